"""`keepsake connect` and `keepsake disconnect`: write, or show, what a coding client needs to use Keepsake."""

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keepsake import dispatch
from keepsake.core.errors import BadInput, KeepsakeError
from keepsake.core.lazy import lazy
from keepsake.core.models import InBank
from keepsake.ops import banks, bundling, keys
from keepsake.settings import Settings
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask
from keepsake.surfaces.connect import clients, entries, plan
from keepsake.surfaces.connect.clients import Client, Place
from keepsake.surfaces.connect.entries import Target
from keepsake.surfaces.connect.plan import Change, Wanted
from keepsake.tools import catalog

if TYPE_CHECKING:
    import httpx

    from keepsake.surfaces import bearer
else:
    bearer = lazy("keepsake.surfaces.bearer")
    httpx = lazy("httpx")

Which = Annotated[str, typer.Argument(metavar="CLIENT", help=f"{', '.join(clients.CLIENTS)}, or all.")]
Project = Annotated[bool, typer.Option("--project", help="Files of the project in this folder, not your own.")]


@dataclass(slots=True)
class Done:
    """What happened with one client."""

    client: Client
    changes: list[Change] = field(default_factory=list)
    copies: list[Path] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)
    error: str = ""

    def document(self) -> dict[str, object]:
        """The same as JSON."""
        files = [{"path": str(one.spot.path), "action": one.action, "content": one.shown} for one in self.changes]
        told = {"client": self.client.name, "files": files, "backups": [str(path) for path in self.copies]}
        return {**told, "todo": self.todo, "error": self.error or None}


def connect(  # noqa: PLR0913  # typer reads a command's options from its parameters
    client: Which,
    *,
    bank: Annotated[str | None, typer.Option(metavar="NAME", help="Reach this bank alone, not the project's.")] = None,
    dialect: Annotated[str | None, typer.Option(metavar="NAME", help="Which set of tools to speak.")] = None,
    tier: Annotated[
        keys.Tier | None, typer.Option(help="Which of xerotier's tools to speak; makes a key that opens them.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the files; without it they are only shown.")] = False,
    hooks: Annotated[bool, typer.Option("--hooks", help="Let Keepsake see what the agent does.")] = False,
    rules: Annotated[bool, typer.Option(help="Tell the agent about its memory in its rules file.")] = True,
    url: Annotated[str | None, typer.Option(metavar="URL", help="A running server, instead of one per client.")] = None,
    key: Annotated[bool, typer.Option("--key", help="Make a key for the client.")] = False,
    project: Project = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show, or write, what a coding client needs to use Keepsake."""
    settings, place = effective(data_dir, None), _place(project)
    chosen = _chosen(client, place)
    target = _target(settings, bank, dialect or ("xerotier" if tier else None), url)
    needs = bool(target.url) and asyncio.run(_asks(target.url))
    if key and len(chosen) > 1:
        raise BadInput("A key is for one client. Connect each with --key by itself.")
    key = key or tier is not None
    made = None
    wanted = Wanted(target, "", hooks, rules)
    # A key that is made revokes the one before: not for a client whose files cannot be written.
    can = not all(_connected(one, place, wanted, write=False).error for one in chosen)
    if write and can and (key or (needs and not settings.api_key)):
        made = _granted(settings, target, chosen[0].name if len(chosen) == 1 else client, tier)
    inside = made.secret if made is not None and key and target.url and not chosen[0].reads_variables else ""
    target = replace(_placed(settings, target, made), has_key=key or needs, secret=inside)
    done = [_connected(one, place, Wanted(target, _instructions(target, one), hooks, rules), write) for one in chosen]
    if settings.database_url and not target.url:
        # It may hold a password, so it stays out of their files.
        for one in done:
            one.todo.append(f"Set KEEPSAKE_DATABASE_URL in the environment that starts {one.client.title}.")
    if as_json:
        secret = None if made is None else {"name": made.name, "secret": made.secret, "closed_door": made.closed_door}
        show.document({"written": write, "clients": [one.document() for one in done], "key": secret})
    else:
        _tell(done, write)
        _tell_key(made, can and (needs or key))
    _end(done)


def disconnect(client: Which, project: Project = False, as_json: Json = False) -> None:
    """Take out of a client's files exactly what connect wrote."""
    place = _place(project)
    done = [_disconnected(one, place) for one in _chosen(client, place)]
    if as_json:
        show.document({"clients": [one.document() for one in done]})
    else:
        for one in done:
            _tell_removed(one)
    _end(done)


def _end(done: list[Done]) -> None:
    if any(one.error for one in done):
        raise typer.Exit(1)


def _place(project: bool) -> Place:
    if not project:
        return Place(Path.home())
    return Place(Path.home(), Path.cwd(), effective(None, None).data_dir / "connect")


def _chosen(name: str, place: Place) -> list[Client]:
    if name != "all":
        return [clients.named(name)]
    found = [client for client in clients.CLIENTS.values() if place.has(client)]
    if not found:
        raise BadInput(f"No client is found for this user. Name one: {', '.join(clients.CLIENTS)}.")
    return found


def _target(settings: Settings, bank: str | None, dialect: str | None, url: str | None) -> Target:
    name = dialect or catalog.DEFAULT
    if name not in catalog.DIALECTS:
        raise BadInput(f"There is no dialect {name!r}; the dialects are: {', '.join(catalog.DIALECTS)}.")
    if bank is not None:
        dispatch.validated(InBank, {"bank": bank}, "--bank")
    is_moved = settings.origins["data_dir"] != "default"
    address = url if url is not None else settings.url
    if address and not address.startswith(("http://", "https://")):
        raise BadInput("--url must begin with http:// or https://, such as http://127.0.0.1:8888.")
    return Target(
        entries.command(),
        name,
        dialect is None,
        bank,
        address,
        data_dir=os.path.abspath(settings.data_dir) if is_moved and not address else "",
    )


def _instructions(target: Target, client: Client) -> str:
    """What the client's rules say, which depends on whether it reaches one bank or all."""
    bound = None if target.only(client) is None else catalog.BOUND.get(target.dialect)
    return (bound or catalog.DIALECTS[target.dialect]).instructions


async def _asks(url: str) -> bool:
    """Whether a server wants a key; one that does not answer is not asked again."""
    try:
        async with httpx.AsyncClient(timeout=5, trust_env=not _is_near(url)) as client:
            answer = await client.post(f"{url.rstrip('/')}/v1/operations/bank.list", json={})
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return bool(answer.status_code == httpx.codes.UNAUTHORIZED)


def _is_near(url: str) -> bool:
    try:
        return bearer.is_loopback(httpx.URL(url).host)
    except httpx.InvalidURL:
        return False


def _granted(settings: Settings, target: Target, client: str, tier: keys.Tier | None) -> bundling.Granted:
    """Make the client's key, in place of the one it had; a server elsewhere needs a key to make one."""
    if target.url and not settings.api_key and not _is_near(target.url):
        raise BadInput(
            f"{target.url} wants a key, and making one there needs one too. Set KEEPSAKE_API_KEY to a key of its owner."
        )
    is_workspace = target.dialect == "xerotier"
    return ask(settings, bundling.bundle, client=client, bank=target.bank, tier=tier or "all", workspace=is_workspace)


def _placed(settings: Settings, target: Target, made: bundling.Granted | None) -> Target:
    """The target as xerotier's addresses know it, where that is what it speaks."""
    if target.dialect != "xerotier" or not target.url:
        return target
    if made is not None:
        return replace(target, workspace=made.workspace or "", project=made.project)
    # Without a key the address needs no project; a bank that is not there yet has no workspace.
    known = ask(settings, banks.list_).banks if target.bank else []
    found = next((one.workspace for one in known if one.name == target.bank), None)
    return replace(target, workspace=found or ("" if target.bank is None else "<workspace_id>"))


def _connected(client: Client, place: Place, wanted: Wanted, write: bool) -> Done:
    done = Done(client)
    try:
        done.changes = plan.connecting(client, place, wanted)
        if write:
            done.copies = plan.carried_out(done.changes, is_private=place.project is None)
    except KeepsakeError as error:
        done.error = str(error)
        return done
    done.todo = _todo(client, wanted)
    return done


def _todo(client: Client, wanted: Wanted) -> list[str]:
    todo = [*client.todo]
    if wanted.hooks and client.hooks is None:
        todo.append(f"{client.title} has no hooks: it remembers only what the agent stores.")
    elif wanted.hooks:
        todo += client.hooks_todo
    target = wanted.target
    if target.has_key and client.name == "vscode" and target.url:
        todo.append("VS Code asks for the key when it starts the server.")
    elif target.secret:
        todo.append("The key is in its file: keep that to yourself, and out of version control (.gitignore).")
    elif target.has_key and target.url and not client.reads_variables:
        todo.append(f"{client.title} cannot read a variable here: --key writes the key into its file.")
    elif target.has_key:
        todo.append(f"Set {clients.KEY_VARIABLE} in the environment that starts {client.title}.")
    if target.url and wanted.hooks and client.hooks is not None:
        todo.append(f"Set KEEPSAKE_URL={target.url} there too, so that hooks tell that server.")
    return todo


def _disconnected(client: Client, place: Place) -> Done:
    done = Done(client)
    try:
        done.changes = plan.disconnecting(client, place)
        done.copies = plan.undone(done.changes)
    except KeepsakeError as error:
        done.error = str(error)
    return done


def _tell(done: list[Done], write: bool) -> None:
    for one in done:
        show.line(one.client.title)
        if one.error:
            show.line(f"  {one.error}")
            continue
        for change in one.changes:
            word = {"keep": "unchanged", "create": "new", "change": "changed"}[change.action]
            show.line(f"  {word:9}  {change.spot.path}")
            for line in change.shown.splitlines() if not change.is_none and not write else ():
                show.line(f"    {line}")
        for path in one.copies:
            show.line(f"  copy       {path}")
        for number, sentence in enumerate(one.todo):
            show.line(f"  {'still to do' if not number else ' ' * 11}  {sentence}")
        show.line()
    if not write and not all(one.error for one in done):
        show.line("Nothing is written yet; the same with --write does it.")


def _tell_key(made: bundling.Granted | None, needs: bool) -> None:
    if made is None:
        if needs:
            show.line(f"A key is made with --write, or set {clients.KEY_VARIABLE} to one that you have.")
        return
    show.line(f"The key {made.name!r}. It is shown only this once:")
    show.line()
    show.line(f"  export {clients.KEY_VARIABLE}={made.secret}")
    if made.closed_door:
        show.line()
        show.line("The first key closes the open door: requests without a key are refused from now on.")


def _tell_removed(done: Done) -> None:
    if done.error:
        show.line(f"{done.client.title}: {done.error}")
        return
    if not done.changes:
        show.line(f"{done.client.title}: nothing of Keepsake's is there.")
        return
    show.line(done.client.title)
    for change in done.changes:
        word = {"remove": "removed", "restore": "as before", "change": "taken out"}[change.action]
        show.line(f"  {word:9}  {change.spot.path}")
    for path in done.copies:
        show.line(f"  The file has changed since; what it was before stays in {path}")
