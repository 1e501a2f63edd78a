"""Sentences from documents, without their markup."""

import pytest

from keepsake.core import prose


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (
            "# Shop\n\nIt sells **tea** to [people](https://a.example) who\nlike it.",
            ["It sells tea to people who like it."],
        ),
        ("Shop\n====\n\nIt uses :class:`flask.Flask` and ``tea``.", ["It uses flask.Flask and tea."]),
        ("It is a [WSGI] framework, see `the docs <https://a.example>`_.", ["It is a WSGI framework, see the docs."]),
        ("[![Build](b.svg)](https://ci.example)\n\n![Logo](logo.png)\n\n<p align='center'>\n", []),
        (
            "Start the server:\n\n```\nshop serve --port 80 --all\n```\n\n.. image:: tea.png\n    :alt: Tea\n",
            [],
        ),
        ("| a | b |\n|---|---|\n| one cell of a table | another |\n", []),
        (
            "- [ ] Every order is packed.\n- Every parcel is weighed.\n",
            ["Every order is packed.", "Every parcel is weighed."],
        ),
        ("Short one.\n\nA sentence said twice here.\n\nA sentence said twice here.", ["A sentence said twice here."]),
        ("", []),
    ],
)
def test_only_sentences_are_left_of_a_document(section: str, told: list[str]) -> None:
    assert prose.sentences(section) == told


def test_a_rule_says_what_to_do() -> None:
    section = "Every change must have a test.\n\nUse four spaces in code.\n\nThe tools that people use are many."

    assert prose.prescribing(section) == ["Every change must have a test.", "Use four spaces in code."]


def test_what_is_unsettled_is_said_to_be() -> None:
    section = "TODO: weigh the parcels.\n\nRefunds are not yet implemented.\n\nThe todo list works well for us."

    assert prose.unsettled(section) == ["TODO: weigh the parcels.", "Refunds are not yet implemented."]
