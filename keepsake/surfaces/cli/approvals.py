"""`keepsake approvals`: what others propose, and what you say to it."""

from typing import Annotated

import typer

from keepsake.core import diffing
from keepsake.ops import approvals
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask

app = typer.Typer(help="Decide on what agents and others propose.")
Id = Annotated[str, typer.Argument(metavar="ID", help="The proposal, by its id.")]


@app.command("list")
def list_(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List what waits for your decision, with what each would change."""
    waiting = ask(effective(data_dir, database_url), approvals.list_)
    if as_json:
        show.document(waiting)
        return
    if not waiting.proposals:
        show.line("Nothing waits for your decision.")
        return
    for one in waiting.proposals:
        _told(one)
    show.line("Decide with `keepsake approvals approve ID` or `keepsake approvals deny ID`.")


def _told(one: approvals.ProposalStatus) -> None:
    show.line(f"{one.id}  proposed by {one.proposed_by}, until {one.expires_at[:16].replace('T', ' ')} UTC")
    if one.reason:
        show.line(f"  why: {diffing.plain(one.reason)}")
    for line in one.diff.splitlines():
        show.line(f"  {line}")


@app.command()
def approve(id: Id, data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Approve a proposal: whoever made it has 15 minutes to apply it."""
    made = ask(effective(data_dir, database_url), approvals.decide, id=id, approve=True)
    if as_json:
        show.document(made)
        return
    show.line(f"Approved: {made.operation} by {made.proposed_by}, until {made.expires_at[11:16]} UTC.")


@app.command()
def deny(id: Id, data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Reject a proposal: nothing is changed."""
    made = ask(effective(data_dir, database_url), approvals.decide, id=id, approve=False)
    if as_json:
        show.document(made)
        return
    show.line(f"Rejected: {made.operation} by {made.proposed_by}.")
