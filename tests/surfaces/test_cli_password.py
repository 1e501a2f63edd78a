"""`keepsake user password`: from the terminal or standard input, never from an argument."""

import getpass
import io
import sys

from tests.surfaces.helpers import Terminal, keepsake

__all__ = ["keepsake"]
PASSWORD = "correct horse battery staple"


class Tty(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_a_password_is_read_from_standard_input(keepsake: Terminal) -> None:
    keepsake("user", "add", "ada", "--role", "reader")
    keepsake.patch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
    ran = keepsake("user", "password", "ada", "--json")

    assert ran.json == {"name": "ada"}
    assert PASSWORD not in ran.out + ran.err


def test_a_password_is_typed_twice(keepsake: Terminal) -> None:
    keepsake("user", "add", "ada")
    keepsake.patch.setattr(sys, "stdin", Tty())
    for typed, code in (((PASSWORD, PASSWORD), 0), ((PASSWORD, "something else"), 2)):
        answers = iter(typed)
        keepsake.patch.setattr(getpass, "getpass", lambda prompt, answers=answers: next(answers))
        assert keepsake("user", "password", "ada").code == code


def test_a_password_that_cannot_be_is_refused(keepsake: Terminal) -> None:
    keepsake("user", "add", "ada")
    for name, typed, code in (("ada", "short", 2), ("ada", "", 2), ("eve", PASSWORD, 1)):
        keepsake.patch.setattr(sys, "stdin", io.StringIO(typed))
        ran = keepsake("user", "password", name)

        assert (ran.code, ran.out) == (code, "")
        assert len(ran.err.strip().splitlines()) == 1
    # There is no way to give one as an argument.
    assert keepsake("user", "password", "ada", PASSWORD).code == 2
