"""What the tabs of the settings share: their frame, their lists, and mistakes told beside the field."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from starlette.responses import Response

from keepsake.core.errors import Conflict, Forbidden, KeepsakeError
from keepsake.surfaces.console.visit import PAGE, Visit

T = TypeVar("T")
#: What a mistake begins with: the operation, then its field, in one of several ways.
_PLACE = re.compile(r"^(?:[a-z]+\.[a-z_]+: )?(?:`the arguments`: )?(?:`([^`]*)`:? ?|([a-z_]+): )?")


@dataclass(frozen=True, slots=True)
class Typed:
    """A form as it was filled in, and what is wrong with it."""

    values: Mapping[str, str]
    chosen: Mapping[str, Sequence[str]]
    #: The field that is wrong, or nothing where it is the form as a whole.
    field: str = ""
    problem: str = ""
    status: int = 400

    def at(self, name: str, usual: str = "") -> str:
        """What stands in a field."""
        return self.values.get(name, usual)

    def has(self, name: str, value: str) -> bool:
        """Whether one of several is ticked."""
        return value in self.chosen.get(name, ())


def mistaken(error: KeepsakeError, values: Mapping[str, str], chosen: Mapping[str, Sequence[str]]) -> Typed:
    """A form that was refused, with what was typed."""
    found = _PLACE.match(str(error))
    assert found is not None
    rest = str(error)[found.end() :]
    place = (found[1] or found[2] or "").partition(".")[0]
    if not place and (isinstance(error, Conflict) or rest.startswith("name ")):
        place = "name"
    return Typed(values, chosen, place, rest[:1].upper() + rest[1:], error.status)


async def tab(visit: Visit, name: str, template: str, values: Mapping[str, object], status: int = 200) -> Response:
    """A page of the settings."""
    return await visit.page(
        template, {"tab": name, "manages": is_manager(visit), **values}, at="settings", status=status
    )


def part(visit: Visit, rows: Sequence[T]) -> tuple[Sequence[T], int]:
    """The rows of this page, and where the next begins; 0 where none does."""
    start = visit.number("from")
    return rows[start : start + PAGE], start + PAGE if len(rows) > start + PAGE else 0


def is_manager(visit: Visit) -> bool:
    """Whether whoever looks manages the whole org, not only some banks."""
    return visit.ctx.principal.acting(frozenset({"admin"})).is_manager


def owned(visit: Visit) -> list[str]:
    """The banks that whoever looks may hand on."""
    acting = visit.ctx.principal.acting(frozenset({"admin"}))
    return [name for name in visit.banks if acting.sees(name)]


def check_owner(visit: Visit) -> None:
    """Refuse, in words for a person, what every operation of a tab would refuse."""
    if not visit.may("admin"):
        raise Forbidden("keys, clients, people and tools are for owners to set.", frozenset({"admin"}))


def check_manager(visit: Visit) -> None:
    """Refuse what is set for the whole org to whoever owns some of its banks."""
    check_owner(visit)
    if not is_manager(visit):
        raise Forbidden("what agents may run is for those to set who manage the whole org.")


def check_account(visit: Visit) -> None:
    """Refuse what would leave the owner of an open machine outside of its console."""
    if visit.me.is_local:
        raise Conflict("With the first key or person this console asks to sign in. Create your own account first.")
