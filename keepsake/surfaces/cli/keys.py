"""`keepsake key`: make, list and revoke API keys."""

from typing import Annotated

import typer

from keepsake.core.errors import BadInput
from keepsake.ops import keys
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask

app = typer.Typer(help="Make, list and revoke API keys.")
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="A name that no other active key has.")]
Tier = Annotated[str, typer.Option(metavar="TIER", help="core, exec, intel or all.")]
Banks = Annotated[list[str] | None, typer.Option("--bank", metavar="BANK", help="Only this bank; may be repeated.")]
Scopes = Annotated[list[str] | None, typer.Option("--scope", metavar="SCOPE", help="Only this scope; may be repeated.")]
Expires = Annotated[str | None, typer.Option(metavar="WHEN", help="ISO 8601, or a time from now: 12h, 30d.")]
Named = Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the key.")]
OptionalName = Annotated[str | None, typer.Option("--name", metavar="NAME", help="The same.")]


@app.command()
def create(  # noqa: PLR0913  # typer reads a command's options from its parameters
    *,
    name: Name,
    tier: Tier = "all",
    bank: Banks = None,
    scope: Scopes = None,
    allow_destructive: Annotated[bool, typer.Option("--allow-destructive", help="Let it delete.")] = False,
    expires: Expires = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Whose key it is; see `keepsake user`.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Make a key; its secret is shown once."""
    made = ask(
        effective(data_dir, database_url),
        keys.create,
        name=name,
        tier=tier,
        banks=bank or None,
        scopes=scope or None,
        allow_destructive=allow_destructive,
        expires=expires,
        user=user,
    )
    if as_json:
        show.document(made)
        return
    show.line(f"The key {made.name!r}. It is shown only this once:")
    show.line()
    show.line(f"  {made.secret}")
    show.line()
    if made.user:
        show.line(f"  user     {made.user}: it may never do more than they may")
    show.line(f"  banks    {', '.join(made.banks) if made.banks is not None else 'every bank'}")
    show.line(f"  scopes   {', '.join(made.scopes)}")
    show.line(f"  tier     {made.tier}")
    show.line(f"  deletes  {'yes' if made.may_destroy else 'no'}")
    show.line(f"  expires  {made.expires_at or 'never'}")
    if made.closed_door:
        show.line()
        show.line("The first key closes the open door: requests without a key are refused from now on.")


@app.command("list")
def list_(
    revoked: Annotated[bool, typer.Option("--revoked", help="Revoked keys as well.")] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List the keys, newest first; never their secrets."""
    held = ask(effective(data_dir, database_url), keys.list_, revoked=revoked)
    if as_json:
        show.document(held)
        return
    if not held.keys:
        show.line("There are no keys. `keepsake key create --name NAME` makes one.")
        return
    show.rows(
        ("NAME", "PREFIX", "TIER", "BANKS", "DELETES", "EXPIRES", "LAST USED", "STATE"),
        [
            (
                key.name,
                f"{key.prefix}…",
                key.tier,
                "all" if key.banks is None else ", ".join(key.banks),
                "yes" if key.may_destroy else "no",
                _day(key.expires_at, "never"),
                _day(key.last_used_at, "never"),
                f"revoked {_day(key.revoked_at, '')}" if key.revoked_at else "active",
            )
            for key in held.keys
        ],
    )


def _day(moment: str | None, otherwise: str) -> str:
    return otherwise if moment is None else moment[:16].replace("T", " ")


@app.command()
def revoke(
    named: Named = None,
    name: OptionalName = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Revoke a key; the next request that carries it is refused."""
    chosen = name or named
    if chosen is None or (name is not None and named is not None and name != named):
        raise BadInput("Say which key to revoke: `keepsake key revoke NAME`.")
    gone = ask(effective(data_dir, database_url), keys.revoke, name=chosen)
    if as_json:
        show.document(gone)
        return
    show.line(f"The key {gone.name!r} ({gone.prefix}…) is revoked.")
    if gone.opened_door:
        show.line("It was the last one: on this machine, requests without a key are accepted again.")
