"""What connecting and disconnecting would change, file by file; nothing is touched before `carried_out`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from keepsake.core.errors import BadInput
from keepsake.surfaces.connect import entries, files, marked
from keepsake.surfaces.connect.clients import Client, Place
from keepsake.surfaces.connect.entries import Target
from keepsake.surfaces.connect.files import File
from keepsake.surfaces.connect.jsontext import Json
from keepsake.surfaces.connect.kinds import INPUT, JsonFile, Kind, MarkedFile, OwnFile, Part

#: Stands in a copy's place when there was no file.
ABSENT = "keepsake: there was no file here before `keepsake connect`\n"


@dataclass(frozen=True, slots=True)
class Spot:
    """A file of a client, and what of it is ours."""

    path: Path
    kind: Kind
    #: The file is ours to run.
    is_program: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after; `after` is None when the file goes."""

    spot: Spot
    file: File
    after: str | None
    shown: str
    #: Whether it will be exactly what it was before it was connected.
    is_restored: bool = False

    @property
    def is_none(self) -> bool:
        """Whether the file stays as it is."""
        return self.after == self.file.text

    @property
    def action(self) -> str:
        """What happens to the file, in one word."""
        if self.is_none:
            return "keep"
        if self.after is None:
            return "remove"
        return "restore" if self.is_restored else "create" if self.file.text is None else "change"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client's files should hold."""

    target: Target
    instructions: str
    hooks: bool = False
    rules: bool = True


def spots(client: Client, place: Place) -> list[Spot]:
    """Every file of a client that may hold something of ours."""
    config, hooks, rules = place.config(client), place.hooks(client), place.rules(client)
    found = []
    if config is not None:
        kind: Kind = MarkedFile(marked.TOML) if config.suffix == ".toml" else JsonFile(client.key, hooks == config)
        found.append(Spot(config, kind))
    if client.hooks is not None and hooks is not None and hooks != config:
        if client.hooks.shape == "scripts":
            found += [Spot(hooks / name, OwnFile(), is_program=True) for name in client.hooks.events]
        elif client.hooks.is_own_file:
            found.append(Spot(hooks, OwnFile()))
            if client.hooks.shape == "plugin":
                found.append(Spot(hooks.parent.parent / ".npmrc", MarkedFile(marked.NPM)))
        else:
            found.append(Spot(hooks, JsonFile("", True, 1 if client.hooks.shape == "flat" else None)))
    if rules is not None:
        found.append(Spot(rules, OwnFile() if client.rules.is_own_file else MarkedFile(marked.MARKDOWN)))
    return found


def connecting(client: Client, place: Place, wanted: Wanted) -> list[Change]:
    """What would be written."""
    if place.project is not None and place.config(client) is None:
        raise BadInput(f"{client.title} reads no servers from a project. Connect it without --project.")
    return [change for spot in spots(client, place) if (change := _connecting(client, place, wanted, spot))]


def _connecting(client: Client, place: Place, wanted: Wanted, spot: Spot) -> Change | None:
    part = _part(client, place, wanted, spot)
    if part is None:
        return None
    file = files.read(spot.path, place.within, place.copies)
    before = file.text or ""
    try:
        held = spot.kind.held(before)
        if isinstance(spot.kind, JsonFile) and not part.hooks:
            part = replace(part, hooks=held.hooks)
        after = before
        if held != part or file.text is None:
            was = _undisturbed(spot, file, held)
            after = spot.kind.applied(before if was is None else was, part)
        if spot.kind.held(after) != part:
            raise BadInput("the change did not come out as meant. Put the lines there by hand.")
    except BadInput as error:
        raise _told(spot.path, error, spot.kind.shown(part)) from error
    return Change(spot, file, after, spot.kind.shown(part))


def _undisturbed(spot: Spot, file: File, held: Part) -> str | None:
    """What the file was before it was connected, if nothing but our part has changed since; empty for no file."""
    saved = files.saved(file) if held else None
    was = "" if saved == ABSENT else saved
    return was if was is not None and spot.kind.applied(was, held) == file.text else None


def _told(path: Path, error: BadInput, shown: str) -> BadInput:
    return BadInput(f"{path} stays as it is: {error} What belongs there: {' '.join(shown.split())}")


def _part(client: Client, place: Place, wanted: Wanted, spot: Spot) -> Part | None:
    """What of a file should be ours; None when it is not asked for."""
    target = wanted.target
    config, hooks, rules = place.config(client), place.hooks(client), place.rules(client)
    if spot.path == rules:
        text = entries.rules(wanted.instructions)
        own = f"{client.rules.front}{text}\n\n<!-- `keepsake connect` wrote this file -->\n"
        return Part(text=own if client.rules.is_own_file else text) if wanted.rules else None
    is_hooked = wanted.hooks and client.hooks is not None
    if spot.path != config:
        if not is_hooked or hooks is None:
            return None
        if not isinstance(spot.kind, JsonFile):
            return Part(text=entries.hook_files(client, target, hooks)[spot.path])
        return Part(hooks=entries.hooks(client, target))
    if isinstance(spot.kind, MarkedFile):
        return Part(text=entries.table(client, target))
    server = entries.server(client, target)
    inputs: list[Json] = []
    if f"input:{INPUT}" in str(server):
        inputs = [{"type": "promptString", "id": INPUT, "description": "Key for Keepsake", "password": True}]
    return Part(server, entries.hooks(client, target) if is_hooked and hooks == config else {}, inputs)


def disconnecting(client: Client, place: Place) -> list[Change]:
    """What would be taken out: our parts and nothing else."""
    found = []
    for spot in spots(client, place):
        file = files.read(spot.path, place.within, place.copies)
        if file.text is None:
            continue
        try:
            if part := spot.kind.held(file.text):
                found.append(_disconnecting(spot, file, part))
        except BadInput as error:
            # A file of that name that is not ours is none of our business.
            if not isinstance(spot.kind, OwnFile):
                raise BadInput(f"{spot.path} stays as it is: {error}") from error
    return found


def _disconnecting(spot: Spot, file: File, part: Part) -> Change:
    assert file.text is not None
    saved, shown = files.saved(file), spot.kind.shown(part)
    if isinstance(spot.kind, OwnFile):
        return Change(spot, file, None, shown)
    if (was := _undisturbed(spot, file, part)) is not None:
        return Change(spot, file, None if saved == ABSENT else was, shown, is_restored=True)
    after = spot.kind.without(file.text, "" if saved is None or saved == ABSENT else saved)
    if saved == ABSENT and after.strip() in ("", "{}"):
        return Change(spot, file, None, shown, is_restored=True)
    return Change(spot, file, after, shown)


def carried_out(changes: list[Change], *, is_private: bool) -> list[Path]:
    """Write what connecting asks for; gives the copies that were made."""
    made = []
    for change in changes:
        if change.is_none or change.after is None:
            continue
        if not isinstance(change.spot.kind, OwnFile):
            made += list(_saved(change))
        mode = 0o600 if is_private else 0o644
        files.write(change.file, change.after, mode | 0o111 & (mode >> 2) if change.spot.is_program else mode)
    return made


def _saved(change: Change) -> Iterator[Path]:
    """Keep a copy of a file that has nothing of ours, or no copy yet."""
    file = change.file
    if file.backup.exists() and file.text is not None and change.spot.kind.held(file.text):
        return
    files.back_up(file if file.text is not None else replace(file, text=ABSENT))
    if file.text is not None:
        yield file.backup


def undone(changes: list[Change]) -> list[Path]:
    """Take out what disconnecting asks for; gives the copies that are left because the file had changed."""
    left = []
    for change in changes:
        if change.after is None:
            files.remove(change.file)
        else:
            files.write(change.file, change.after, 0o600)
        if change.is_restored:
            change.file.backup.unlink(missing_ok=True)
        elif change.file.backup.exists():
            if files.saved(change.file) == ABSENT:
                change.file.backup.unlink(missing_ok=True)
            else:
                left.append(change.file.backup)
    return left
