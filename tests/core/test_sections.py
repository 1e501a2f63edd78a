"""Cutting documents into sections with their lines."""

from itertools import pairwise

from keepsake.core.sections import LONG, LONGEST, MOST, Section, split


def test_markdown_is_cut_at_its_headings_and_keeps_its_lines() -> None:
    told = "# Tool\n\nWhat it is.\n\n## Install\n\npip install tool\n\n## Use\n### Quickly\nRun it.\n"

    assert split("README.md", told) == [
        Section("Tool", "What it is.", 1, 3),
        Section("Tool › Install", "pip install tool", 5, 7),
        Section("Tool › Use › Quickly", "Run it.", 10, 11),
    ]


def test_a_hash_in_a_code_block_is_no_heading() -> None:
    told = "# A\n```sh\n# not a heading\nls\n```\nafter\n"

    assert split("a.md", told) == [Section("A", "```sh\n# not a heading\nls\n```\nafter", 1, 6)]


def test_underlined_headings_of_markdown_count_and_rules_do_not() -> None:
    told = "Tool\n====\ntext\n\nPart\n----\nmore\nlines\n---\nlast\n\n- item\n---\n"

    assert [(one.title, one.start) for one in split("a.md", told)] == [("Tool", 1), ("Tool › Part", 5)]


def test_front_matter_is_left_out() -> None:
    told = "---\ntitle: x\n---\nHello.\n"

    assert split("a.md", told) == [Section("", "Hello.", 4, 4)]


def test_restructured_text_learns_its_levels_from_their_order() -> None:
    told = "=====\nTitle\n=====\n\nIntro.\n\nFirst\n-----\nOne.\n\nDeep\n~~~~\nTwo.\n\nSecond\n------\nThree.\n"

    assert [(one.title, one.text, one.start, one.end) for one in split("docs/a.rst", told)] == [
        ("Title", "Intro.", 1, 5),
        ("Title › First", "One.", 7, 9),
        ("Title › First › Deep", "Two.", 11, 13),
        ("Title › Second", "Three.", 15, 17),
    ]


def test_a_table_of_restructured_text_is_no_heading() -> None:
    told = "Title\n=====\n\n====  ====\na     b\n====  ====\n1     2\n====  ====\n"

    assert [one.title for one in split("a.rst", told)] == ["Title"]


def test_asciidoc_and_plain_text() -> None:
    assert [one.title for one in split("a.adoc", "= Doc\n\nHi.\n\n== Part\nText.\n")] == ["Doc", "Doc › Part"]
    assert split("notes.txt", "just\nwords\n") == [Section("", "just\nwords", 1, 2)]


def test_what_says_nothing_has_no_sections() -> None:
    assert split("a.md", "") == split("a.md", "\n \n\n") == split("a.md", "# Only a heading\n") == []


def test_a_long_section_is_cut_between_paragraphs() -> None:
    paragraph = "word " * 100
    sections = split("a.md", "# A\n" + f"{paragraph}\n\n" * 20)

    assert len(sections) > 3
    assert all(len(one.text) <= LONG + len(paragraph) + 2 for one in sections)
    assert all(before.end < after.start for before, after in pairwise(sections))


def test_one_endless_paragraph_is_cut_between_lines() -> None:
    sections = split("a.txt", "x" * 99 + "\n" + ("y" * 99 + "\n") * 1000)

    assert max(len(one.text) for one in sections) <= LONGEST + 200


def test_windows_line_ends_and_too_many_headings() -> None:
    assert split("a.md", "# A\r\ntext\r\n") == [Section("A", "text", 1, 2)]
    assert len(split("a.md", "# A\nx\n" * 1000)) == MOST
