"""One request of the console: who looks, at which bank, and how their pages are made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from keepsake import dispatch
from keepsake.context import Ctx
from keepsake.core.errors import KeepsakeError, NotFound
from keepsake.core.operation import Operation
from keepsake.ops import approvals, banks, overview, users
from keepsake.ops.signing_in import Signed
from keepsake.surfaces.console import nav
from keepsake.surfaces.pages import forms, rendering

G = TypeVar("G", bound=BaseModel)
R = TypeVar("R", bound=BaseModel)
#: A list shows so many, then "Earlier".
PAGE = 50


@dataclass(frozen=True, slots=True)
class Me:
    """Who looks, as the page names them."""

    name: str
    about: str
    is_local: bool


@dataclass(frozen=True, slots=True)
class Visit:
    """One request."""

    request: Request
    ctx: Ctx
    #: Who is signed in; nobody where the door of loopback is open.
    signed: Signed | None
    #: What forms of this browser are signed with.
    secret: str
    banks: tuple[str, ...]
    #: The bank in the address, or nothing on pages about all of them.
    bank: str
    #: Paths of the pages that are there.
    known: frozenset[str]

    async def ask(self, operation: Operation[Ctx, G, R], /, **arguments: object) -> R:
        """Run an operation as whoever looks; what is None is left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        result = await dispatch.call(self.ctx, operation.id, given)
        assert isinstance(result, operation.result)
        return result

    @property
    def me(self) -> Me:
        """Who looks."""
        if self.signed is None:
            return Me("Local owner", "this computer only", is_local=True)
        return Me(self.signed.name, "", is_local=False)

    async def about(self) -> str:
        """What whoever looks is here."""
        if self.signed is None:
            return self.me.about
        held = (await self.ask(users.me)).roles
        told = [f"{one.role} at {one.bank}" if one.bank else one.role for one in held]
        return f"{', '.join(told[:3])}{' and more' if told[3:] else ''}" if told else "no role yet"

    def may(self, *scopes: str) -> bool:
        """Whether something that needs these scopes should be offered."""
        return self.ctx.principal.scopes.issuperset(scopes)

    def query(self, name: str, default: str = "") -> str:
        """A field of the address."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int = 0, most: int = 1_000_000) -> int:
        """A number of the address; what is none counts as left out."""
        told = self.query(name)
        return min(int(told), most) if told.isascii() and told.isdecimal() and len(told) < 16 else default

    def path(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def to(self, page: str, bank: str = "", **query: object) -> str:
        """The address of a page by its name, or by its path below /console."""
        path = nav.ITEMS[page].path if page in nav.ITEMS else page
        return nav.link(path, bank or self.bank or self.home_bank, **query)

    @property
    def home_bank(self) -> str:
        """The bank to show where none is named."""
        usual = self.ctx.app.settings.default_bank
        return usual if usual in self.banks or not self.banks else self.banks[0]

    @property
    def is_part(self) -> bool:
        """Whether only a part of the page is wanted, for htmx to put in its place."""
        return self.request.headers.get("hx-request") == "true" and "hx-boosted" not in self.request.headers

    async def page(self, template: str, values: Mapping[str, object], *, at: str = "", status: int = 200) -> Response:
        """A page with its navigation; `at` is the name of the page, to be marked there."""
        failing, down = await self._down()
        counts = {"approvals": await self._waiting(), "health": down}
        me = replace(self.me, about=await self.about())
        shared = {"at": at, "counts": counts, "failing": failing, "me": me}
        return self.bare(template, {**shared, **values}, status=status)

    def bare(self, template: str, values: Mapping[str, object], *, status: int = 200) -> Response:
        """A page or a part of one without what the navigation counts."""
        shared: dict[str, object] = {
            "visit": self,
            "me": self.me,
            "to": self.to,
            "csrf": forms.token(self.secret),
            "theme": rendering.theme(self.request),
            "here": self.request.url.path,
            "groups": nav.GROUPS,
            "tabs": nav.TABS,
            "at": "",
            "counts": {},
            "failing": "",
        }
        return rendering.scripted(template, shared | dict(values), status)

    async def _waiting(self) -> int:
        try:
            waiting = await self.ask(approvals.count)
        except KeepsakeError:
            return 0
        return waiting.proposals + waiting.invocations

    async def _down(self) -> tuple[str, int]:
        """The bank whose health is linked, which is the one with most incidents where none is named; and how many."""
        found = (await self.ask(overview.incidents)).banks if self.may("watch:read") else {}
        bank = self.bank or max(found, key=lambda name: found[name], default="")
        return bank, found.get(bank, 0)

    def checked_bank(self) -> None:
        """Refuse a bank in the address that is not there for whoever looks."""
        if self.bank and self.bank not in self.banks:
            raise NotFound(f"No bank {self.bank[:100]!r} that you may see. It may have been renamed or deleted.")


async def bank_names(ctx: Ctx) -> tuple[str, ...]:
    """The banks that someone may see, by name; none for who may read nothing."""
    if "memory:read" not in ctx.principal.scopes:
        return ()
    found = await dispatch.call(ctx, banks.list_.id, {})
    assert isinstance(found, banks.Banks)
    return tuple(bank.name for bank in found.banks)
