"""`keepsake user`: people, their roles, and who is shut out."""

import getpass
import sys
from typing import Annotated

import typer

from keepsake.core import roles
from keepsake.core.errors import BadInput
from keepsake.ops import invitations, signing_in, users
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask

app = typer.Typer(help="Add people, give them roles, and shut them out.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="What the person is called.")]
Bank = Annotated[str | None, typer.Option(metavar="BANK", help="Where the role holds; everywhere when left out.")]
ROLES = f"Roles: {'; '.join(f'{name}: {roles.MEANING[name]}' for name in roles.NAMES)}."


@app.command(epilog=ROLES)
def add(
    name: Name,
    role: Annotated[str | None, typer.Option(metavar="ROLE", help="A role to begin with.")] = None,
    bank: Bank = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Add a person."""
    made = ask(effective(data_dir, database_url), users.add, name=name, role=role, bank=bank)
    if as_json:
        show.document(made)
        return
    show.line(f"{made.name} is {_told(made)}.")
    show.line(f"A key of theirs: keepsake key create --name {made.name}-laptop --user {made.name}")


@app.command("list")
def list_(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the people and their roles."""
    people = ask(effective(data_dir, database_url), users.list_)
    if as_json:
        show.document(people)
        return
    if not people.users:
        show.line("There are no people. `keepsake user add NAME --role ROLE` adds one.")
        return
    show.rows(
        ("NAME", "ROLES", "SINCE", "STATE"),
        [
            (one.name, _told(one), one.created_at[:10], "shut out" if one.disabled_at else "active")
            for one in people.users
        ],
    )


@app.command(epilog=ROLES)
def role(
    name: Name,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="owner, editor, reader, approver or auditor.")],
    bank: Bank = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take it away instead.")] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Give a person a role, or take it away."""
    changed = ask(effective(data_dir, database_url), users.role, name=name, role=role, bank=bank, remove=remove)
    if as_json:
        show.document(changed)
        return
    show.line(f"{changed.name} is {_told(changed)} from the next request on.")


@app.command()
def disable(
    name: Name,
    enable: Annotated[bool, typer.Option("--enable", help="Let them in again instead.")] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Shut a person out: every key of theirs stops with the next request."""
    changed = ask(effective(data_dir, database_url), users.disable, name=name, enable=enable)
    if as_json:
        show.document(changed)
        return
    show.line(f"{changed.name} is {'shut out' if changed.disabled_at else 'let in again'}.")


@app.command(epilog=ROLES)
def invite(
    name: Name,
    role: Annotated[str | None, typer.Option(metavar="ROLE", help="A role to begin with.")] = None,
    bank: Bank = None,
    expires: Annotated[str, typer.Option(metavar="TIME", help="For how long it can be used: 12h, 3d.")] = "3d",
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Make a one-time link by which someone gets their account, or a new password for the one they have."""
    settings = effective(data_dir, database_url)
    made = ask(settings, invitations.invite, name=name, role=role, bank=bank, expires=expires)
    if as_json:
        show.document(made)
        return
    show.line(f"{made.name} opens this link, once, before {made.expires_at[:16].replace('T', ' ')} UTC:")
    show.line(f"  {made.link}")
    show.line("It cannot be shown again. Send it in a way that only they can read.")


@app.command("invitations")
def invited(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the links that can still be used; never the links themselves."""
    held = ask(effective(data_dir, database_url), invitations.list_)
    if as_json:
        show.document(held)
        return
    if not held.invitations:
        show.line("There are no invitations. `keepsake user invite NAME --role ROLE` makes one.")
        return
    rows = [
        (one.id, one.name or "the first account", _offered(one), one.expires_at[:16].replace("T", " "))
        for one in held.invitations
    ]
    show.rows(("ID", "FOR", "GIVES", "UNTIL (UTC)"), rows)


def _offered(one: invitations.Invited) -> str:
    if not one.is_new:
        return "a new password"
    return f"{one.role} at {one.bank}" if one.bank else one.role or "no role"


@app.command()
def uninvite(
    id: Annotated[str, typer.Argument(metavar="ID", help="The invitation, as listed.")],
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Take an invitation back."""
    gone = ask(effective(data_dir, database_url), invitations.uninvite, id=id)
    if as_json:
        show.document(gone)
        return
    show.line("The link is good no more.")


@app.command()
def password(
    name: Name,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Set the password that a person signs in with: asked for at the terminal, or read from standard input."""
    settings, typed = effective(data_dir, database_url), _typed()
    changed = ask(settings, signing_in.set_password, name=name, password=typed)
    if as_json:
        show.document(changed)
        return
    show.line(f"{changed.name} can sign in with it now. Whoever was signed in as {changed.name} must do so again.")


def _typed() -> str:
    """A password, never from an argument, which other programs of this machine could read."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("New password: ")
    if getpass.getpass("The same again: ") != first:
        raise BadInput("The two are not the same. Nothing was changed.")
    return first


def _told(person: users.Person) -> str:
    """The roles in words."""
    return ", ".join(f"{one.role} at {one.bank}" if one.bank else one.role for one in person.roles) or "without a role"
