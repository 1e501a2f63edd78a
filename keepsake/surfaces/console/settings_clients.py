"""The Clients tab: for each coding client its files, with a key made for it, its rules and what to mind."""

import io
import re
import shlex
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import NotFound
from keepsake.core.principal import DEFAULT_SCOPES, Principal
from keepsake.dispatch import Door
from keepsake.ops import bundling, keys
from keepsake.ops.bundling import Granted
from keepsake.ops.keys import Key
from keepsake.surfaces import bearer
from keepsake.surfaces.connect import bundle
from keepsake.surfaces.connect.bundle import Asked, Bundle
from keepsake.surfaces.connect.clients import CLIENTS, KEY_VARIABLE
from keepsake.surfaces.connect.entries import Target
from keepsake.surfaces.console import settings_parts as parts
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import rendering
from keepsake.surfaces.pages.forms import Fields
from keepsake.tools import catalog

HERE = "/settings/clients"
#: Who is set up by hand.
ANY = "any"
#: A client in two letters.
_MARKS = {
    "claude-code": "Cc",
    "codex": "Cx",
    "vscode": "Vs",
    "windsurf": "Ws",
    "opencode": "Oc",
    "claude-desktop": "Cd",
}
#: What each tier adds; sets, not a ladder.
TIERS = (
    ("core", "10 tools", "Memories, workspaces, web, calculator"),
    ("exec", "14 tools", "core, and enrolled tools with approval"),
    ("intel", "25 tools", "core, and decisions, graph, artifacts, code"),
    ("all", "29 tools", "exec and intel together"),
)
_ALIEN = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Choice:
    """What a bundle is for, as the address says it."""

    client: str
    bank: str
    dialect: str
    tier: str

    @property
    def query(self) -> dict[str, str]:
        """The same for an address; what is usual is left out."""
        dialect = "" if self.dialect == catalog.DEFAULT else self.dialect
        return {"only": self.bank, "dialect": dialect, "tier": "" if self.tier == "all" else self.tier}

    def command(self, url: str) -> str:
        """What does the same at a terminal; a server elsewhere is named."""
        words = ["keepsake", "connect", self.client]
        words += ["--bank", self.bank] if self.bank else []
        words += ["--dialect", self.dialect] if self.dialect != catalog.DEFAULT else []
        words += ["--tier", self.tier] if self.tier != "all" else []
        words += ["--url", url] if url else []
        return shlex.join([*words, "--write", "--hooks"])


@dataclass(frozen=True, slots=True)
class Known:
    """A client in the list, and the key it has."""

    name: str
    title: str
    mark: str
    last_used_at: str | None = None
    has_key: bool = False


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this tab."""
    return [
        console.page(HERE, show),
        console.page(HERE + "/{client}", show),
        console.page(HERE + "/{client}/files.zip", files),
        console.form(HERE + "/{client}/bundle", grant),
        console.form(HERE + "/{client}/revoke", revoke),
    ]


async def show(visit: Visit) -> Response:
    """A client's files before there is a key, and how to get one."""
    return await _shown(visit, _chosen(visit, visit.request.query_params))


def _chosen(visit: Visit, given: Mapping[str, str]) -> Choice:
    """What was chosen; a client, bank, dialect or tier that is not there is no page."""
    parts.check_owner(visit)
    banks = parts.owned(visit)
    usual = "" if parts.is_manager(visit) else next(iter(banks), "")
    choice = Choice(
        visit.request.path_params.get("client", next(iter(CLIENTS))),
        given.get("only") or usual,
        given.get("dialect") or catalog.DEFAULT,
        given.get("tier") or "all",
    )
    is_known = choice.client in (*CLIENTS, ANY) and choice.dialect in catalog.DIALECTS
    if not is_known or choice.tier not in [name for name, _, _ in TIERS]:
        raise NotFound("There is no such client, dialect or tier.")
    if choice.bank and choice.bank not in banks:
        raise NotFound("No such bank that you own.")
    return choice


async def _shown(visit: Visit, choice: Choice, granted: Granted | None = None) -> Response:
    held = (await visit.ask(keys.list_)).keys
    values = {
        "known": _known(held),
        "choice": choice,
        "client": CLIENTS.get(choice.client),
        "banks": parts.owned(visit),
        "dialects": list(catalog.DIALECTS),
        "tiers": TIERS,
        "is_manager": parts.is_manager(visit),
        "granted": granted,
        "variable": KEY_VARIABLE,
        "is_list": "client" not in visit.request.path_params,
        **await _bundle(visit, choice, held, granted),
    }
    if visit.is_part:
        return visit.bare("settings_bundle.html", values)
    return await parts.tab(visit, "clients", "settings_clients.html", values)


async def _bundle(visit: Visit, choice: Choice, held: list[Key], granted: Granted | None) -> dict[str, object]:
    """The bundle of a choice, as far as it can be shown, and the key that the client has for it."""
    asked = Asked(places.base(visit.ctx.app.settings, visit.request), choice.dialect)
    place = granted or await visit.ask(bundling.address, bank=choice.bank or None)
    name = bundling.key_name(choice.client, place.bank)
    is_near = bearer.is_loopback(urlsplit(asked.url).hostname or "")
    found: dict[str, object] = {
        "bundle": None,
        "target": Target((), choice.dialect, False, place.bank, asked.url, workspace=place.workspace or ""),
        "key": next((key for key in held if key.name == name), None),
        "tools": _tools(visit, choice),
        "is_remote": not is_near,
        "command": choice.command("" if is_near else asked.url),
    }
    if client := CLIENTS.get(choice.client):
        made = bundle.made(client, asked, granted) if granted else bundle.preview(client, asked, place)
        found |= {"bundle": made, "bytes": sum(len(paper.text.encode()) for paper in made.files)}
    return found


def _tools(visit: Visit, choice: Choice) -> tuple[int, int]:
    """How many of a dialect's tools a key of this tier is shown, and how many there are."""
    bound = catalog.BOUND.get(choice.dialect) if choice.bank else None
    dialect = bound or catalog.DIALECTS[choice.dialect]
    holder = Principal(visit.ctx.org, "key", DEFAULT_SCOPES, tier=choice.tier, key=0)
    return len(Door(dialect).tools(visit.ctx.app.ctx(holder))), len(dialect.tools)


def _known(held: list[Key]) -> list[Known]:
    """The clients, with when the key of each was last used."""
    found = []
    for client in CLIENTS.values():
        theirs = [key for key in held if key.name.startswith(f"{client.name}@")]
        used = max((key.last_used_at for key in theirs if key.last_used_at), default=None)
        mark = _MARKS.get(client.name, client.title[:2])
        found.append(Known(client.name, client.title, mark, used, bool(theirs)))
    return [*found, Known(ANY, "Any MCP client", "{}")]


async def grant(visit: Visit, fields: Fields) -> Response:
    """Make the client's key in place of the one it had, and hand its files out."""
    parts.check_account(visit)
    choice = _chosen(visit, {name: fields.maybe(name, 200) or "" for name in ("only", "dialect", "tier")})
    if choice.client not in CLIENTS:
        raise NotFound("A client that is set up by hand takes a key from the tab API keys.")
    is_workspace = choice.dialect == "xerotier"
    granted = await visit.ask(
        bundling.bundle, client=choice.client, bank=choice.bank or None, tier=choice.tier, workspace=is_workspace
    )
    if fields.maybe("key") == "variable":
        return await _shown(visit, choice, granted)
    asked = Asked(places.base(visit.ctx.app.settings, visit.request), choice.dialect, has_key_inside=True)
    return _zipped(bundle.made(CLIENTS[choice.client], asked, granted), choice)


async def files(visit: Visit) -> Response:
    """A client's files without a key in them; nothing is made or revoked."""
    choice = _chosen(visit, visit.request.query_params)
    if choice.client not in CLIENTS:
        raise NotFound("A client that is set up by hand has no files of ours.")
    asked = Asked(places.base(visit.ctx.app.settings, visit.request), choice.dialect)
    place = await visit.ask(bundling.address, bank=choice.bank or None)
    return _zipped(bundle.preview(CLIENTS[choice.client], asked, place), choice)


def _zipped(made: Bundle, choice: Choice) -> Response:
    """The files of a bundle in one, each at its path; what belongs into the home folder stands under `home`."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in (("README.txt", _readme(made)), *((paper.path, paper.text) for paper in made.files)):
            entry = zipfile.ZipInfo(f"home{path[1:]}" if path.startswith("~") else path)
            # A key may be in it: nobody else's to read.
            entry.external_attr, entry.compress_type = 0o600 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    name = _ALIEN.sub("-", f"keepsake-{choice.client}-{choice.bank or bundling.EVERY}")[:100]
    headers = {**rendering.HEADERS, "Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(whole.getvalue(), headers=headers, media_type="application/zip")


def _readme(made: Bundle) -> str:
    lines = [f"Keepsake for {made.title}", ""]
    for paper in made.files:
        place = "merge it into the file that is there" if paper.is_merged else "save it there"
        where = f"home{paper.path[1:]} belongs to {paper.path}" if paper.path.startswith("~") else paper.path
        lines.append(f"- {where}: {place}.")
    lines += ["", *(f"- {line}" for line in made.advice)]
    if made.ignore:
        lines += ["", "For .gitignore:", *made.ignore]
    return "\n".join(lines) + "\n"


async def revoke(visit: Visit, fields: Fields) -> Response:
    """End the key that the client has for a bank."""
    choice = _chosen(visit, {name: fields.maybe(name, 200) or "" for name in ("only", "dialect", "tier")})
    await visit.ask(keys.revoke, name=bundling.key_name(choice.client, choice.bank or None))
    return rendering.moved(visit.to(f"{HERE}/{choice.client}", **choice.query))
