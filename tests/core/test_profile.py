"""What is counted for a project's profile."""

from keepsake.core import clock, profile
from keepsake.core.profile import Commit

DAY = clock.DAY
NOW = clock.parse("2026-05-01")


def commit(id: int, days: int, author: str, *paths: str, title: str = "change") -> Commit:
    return Commit(id, NOW - days * DAY, author, title, paths)


def test_a_file_that_is_gone_is_no_hot_spot() -> None:
    commits = [commit(2, 0, "Anna", "a.py"), commit(1, 1, "Anna", "a.py", "gone.py")]

    told = profile.hot_spots(commits, {"a.py"})

    assert [(one.text, one.rests_on) for one in told] == [
        ("a.py was changed by 2 commits, last on 2026-05-01: change", (2, 1))
    ]


def test_a_folder_is_told_by_the_one_in_it_that_has_nearly_all_changes() -> None:
    commits = [commit(n, n, "Anna", "src/shop/a.py") for n in range(1, 20)] + [commit(30, 30, "Anna", "src/setup.py")]

    assert sorted(profile.by_folder(commits, {"src/shop/a.py", "src/setup.py"})) == ["src/shop"]


def test_every_folder_is_told_where_changes_are_spread() -> None:
    commits = [commit(1, 1, "Anna", "src/a/x.py"), commit(2, 1, "Anna", "src/b/y.py")]

    assert sorted(profile.by_folder(commits, {"src/a/x.py", "src/b/y.py"})) == ["src", "src/a", "src/b"]


def test_owners_are_those_who_made_most_with_their_last_day_and_no_address() -> None:
    commits = [
        *(commit(n, n, "anna@shop.example", "src/a.py") for n in range(1, 8)),
        *(commit(n, n, "Ben", "src/a.py") for n in range(200, 203)),
        commit(9, 0, "renovate[bot]", "src/a.py"),
    ]

    told = profile.owners(commits, {"src/a.py"})

    assert [(one.section, one.text, one.rests_on) for one in told] == [
        ("", "Overall: anna made 7 of 10 commits (last on 2026-04-30), Ben 3 (last on 2025-10-13).", (1, 200)),
        ("", "Since 2026-01-30: anna made 7 of 7 commits (last on 2026-04-30).", (1,)),
        ("By folder", "src: anna made 7 of 10 commits (last on 2026-04-30), Ben 3 (last on 2025-10-13).", (1, 200)),
    ]


def test_nothing_known_gives_nothing() -> None:
    assert (profile.hot_spots([], set()), profile.owners([], set()), profile.habits([]), profile.layout({}, ())) == (
        [],
        [],
        [],
        [],
    )


def test_habits_are_what_most_messages_share() -> None:
    commits = [commit(n, n, "Anna", title=f"fix(tea): weigh it (#{n})") for n in range(1, 11)]

    assert [one.text for one in profile.habits(commits)] == [
        "10 of the newest 10 commit messages begin with a type such as fix:",
        "10 of the newest 10 commit messages name an issue or pull request by its number.",
        "Nine of ten subjects of the newest commits have at most 23 letters.",
    ]


def test_the_layout_tells_folders_by_their_files() -> None:
    told = profile.layout({"README.md": 900, "src/shop/a.py": 2_000, "src/shop/b.py": 2_500_000}, (7,))

    assert [(one.text, one.rests_on) for one in told] == [
        ("It has 3 files, 2.5 MB in all, most of them .py (2), .md (1).", (7,)),
        ("src holds 2 files, 2.5 MB, in src/shop.", (7,)),
    ]
