"""How the benchmark makes questions from a repository's history."""

from pathlib import Path

import pytest

from bench import history
from tests.gitting import Made

CODE = '''class Shop:
    """Sells tea.

    ::

        def example():
            pass
    """

    def __init__(self):
        self.tea = 1

    def order(self, number):
        if number:
            return number
        return None


LIMIT = 5
'''


@pytest.mark.parametrize(("line", "name"), [(11, "Shop"), (14, "order"), (16, "order"), (13, "order"), (19, "")])
def test_the_function_is_the_one_that_the_line_stands_in(line: int, name: str) -> None:
    assert history.around(CODE.splitlines(), line) == name


def test_a_question_never_repeats_the_message_and_asks_only_of_changed_functions(tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    made.commit("Begin", {"shop.py": CODE, "CHANGES.rst": "Changes\n-------\n\n"})
    first = made.commit(
        "Return every ordered number doubled, closes #12\n\nSigned-off-by: Anna <a@b.example>",
        {"shop.py": CODE.replace("return number", "return 2 * number")},
    )
    refusing = CODE.replace("return number", "return abs(number)")
    bullet = "-   Customers cannot buy less than\n    nothing any more. :issue:`7`\n"
    second = made.commit(
        "Refuse a negative order with an error",
        {"shop.py": refusing, "CHANGES.rst": f"Changes\n-------\n\n{bullet}"},
    )
    made.commit("Change only the limit of the whole shop", {"shop.py": refusing.replace("5", "6")})

    asked = {next(iter(one.gold)): (one.text, one.kind) for one in history.questions(made.path)}

    assert asked == {
        first: ("When and why was order changed: doubled ordered return?", "message"),
        second: (
            "When and why was order changed: Customers cannot buy less than nothing any more?",
            "changelog",
        ),
    }
