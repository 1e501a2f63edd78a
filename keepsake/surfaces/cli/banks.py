"""`keepsake bank`: make, list and rename banks."""

from typing import Annotated

import typer

from keepsake.ops import aliases, banks
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask

app = typer.Typer(help="Make, list and rename banks.")


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the bank.")],
    title: Annotated[str, typer.Option(metavar="TEXT", help="A human-friendly name.", show_default=False)] = "",
    mission: Annotated[str, typer.Option(metavar="TEXT", help="What the bank is for.", show_default=False)] = "",
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Make a bank; one that exists is left as it is."""
    bank = ask(effective(data_dir, database_url), banks.create, name=name, title=title, mission=mission)
    if as_json:
        show.document(bank)
        return
    show.line(f"The bank {bank.name!r} is there, made {bank.created_at}.")


@app.command("list")
def list_(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the banks, by name."""
    held = ask(effective(data_dir, database_url), banks.list_)
    if as_json:
        show.document(held)
        return
    if not held.banks:
        show.line("There are no banks yet. The first memory makes one, or `keepsake bank create NAME`.")
        return
    cells = [(bank.name, bank.title, bank.created_at or "", bank.mission) for bank in held.banks]
    show.rows(("NAME", "TITLE", "MADE", "MISSION"), cells)


@app.command()
def alias(  # typer reads a command's options from its parameters
    bank: Annotated[str, typer.Argument(metavar="BANK", help="Name of the bank.")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Its other name.", show_default=False)] = None,
    *,
    rename: Annotated[bool, typer.Option("--rename", help="Show the bank under that name from now on.")] = False,
    project: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="A folder whose project is the bank's from now on.", show_default=False),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Give a bank another name, or one more project; it keeps its memories."""
    identity = None if project is None else aliases.project_of(project)
    named = ask(effective(data_dir, database_url), aliases.alias, bank=bank, name=name, project=identity, rename=rename)
    if as_json:
        show.document(named)
        return
    show.line(f"The bank {named.bank!r}.")
    show.line(f"  also called  {', '.join(named.aliases) or '-'}")
    show.line(f"  projects     {', '.join(named.projects) or '-'}")
