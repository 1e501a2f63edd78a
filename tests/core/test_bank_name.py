"""What a bank may be called, in our words and in the pattern that clients are told."""

import re
from itertools import product

import pytest

from keepsake.core import bank_name


def accepts(name: str) -> bool:
    """Whether a bank may be called that."""
    try:
        return bank_name.checked(name) == name
    except ValueError:
        return False


@pytest.mark.parametrize("name", ["a", "my bank", ".dotfiles", "v1.2", "Zoë", "日本", "user:42", "a-b_c@d", "x" * 128])
def test_a_plain_name_is_accepted(name: str) -> None:
    assert accepts(name)


@pytest.mark.parametrize("name", ["", " ", ".", "..", "a/b", "a\\b", "a..b", " a", "a ", ". a", "a .", "a\nb", "\x85"])
def test_a_name_that_is_a_place_or_cannot_be_typed_is_refused(name: str) -> None:
    assert not accepts(name)


def test_the_pattern_says_what_is_accepted() -> None:
    names = ["".join(letters) for length in range(6) for letters in product("ab. /\\\n\x01\x85", repeat=length)]

    told = [name for name in names if re.search(bank_name.PATTERN, name) and not name.endswith("\n")]

    assert told == [name for name in names if accepts(name)]
