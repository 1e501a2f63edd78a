"""`keepsake approvals`: what others propose or want run, and what you say to it."""

from typing import Annotated

import typer

from keepsake.core import diffing
from keepsake.ops import approvals
from keepsake.ops.invocations import Request
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask

app = typer.Typer(help="Decide on what agents and others propose, or want run.")
Id = Annotated[str, typer.Argument(metavar="ID", help="The proposal or invocation, by its id.")]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; whoever asked is told.")]


@app.command("list")
def list_(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List what waits for your decision, with what each would do."""
    waiting = ask(effective(data_dir, database_url), approvals.list_)
    if as_json:
        show.document(waiting)
        return
    if not waiting.proposals and not waiting.invocations:
        show.line("Nothing waits for your decision.")
        return
    for one in waiting.proposals:
        _told(one)
    for wanted in waiting.invocations:
        _wanted(wanted)
    show.line("Decide with `keepsake approvals approve ID` or `keepsake approvals deny ID`.")


def _told(one: approvals.ProposalStatus) -> None:
    show.line(f"{one.id}  proposed by {one.proposed_by}, until {_until(one.expires_at)}")
    if one.reason:
        show.line(f"  why: {diffing.plain(one.reason)}")
    for line in one.diff.splitlines():
        show.line(f"  {line}")


def _wanted(one: Request) -> None:
    show.line(f"{one.id}  {one.tool} ({one.effect}) asked for by {one.requested_by}, until {_until(one.expires_at)}")
    if one.description:
        show.line(f"  what: {diffing.plain(one.description)}")
    if one.reason:
        show.line(f"  why: {diffing.plain(one.reason)}")
    for line in one.does.splitlines():
        show.line(f"  runs: {diffing.plain(line)}")
    for read in one.handed:
        show.line(f"  had read from outside: {read.kind} {diffing.plain(read.what)} {diffing.plain(read.text[:80])}")
    if one.needed > 1:
        show.line(f"  {one.needed} persons must agree")


def _until(moment: str) -> str:
    return f"{moment[:16].replace('T', ' ')} UTC"


@app.command()
def approve(
    id: Id, reason: Reason = None, data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Approve: a proposal can be applied for 15 minutes, an invocation is run."""
    made = ask(effective(data_dir, database_url), approvals.say, id=id, approve=True, reason=reason)
    if as_json:
        show.document(made)
        return
    if made.state == "awaiting_approval":
        show.line(f"You agreed to {made.what} by {made.requested_by}; another person has to as well.")
        return
    show.line(f"Approved: {made.what} by {made.requested_by}, until {made.expires_at[11:16]} UTC.")


@app.command()
def deny(
    id: Id, reason: Reason = None, data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Deny: nothing is changed, nothing is run."""
    made = ask(effective(data_dir, database_url), approvals.say, id=id, approve=False, reason=reason)
    if as_json:
        show.document(made)
        return
    show.line(f"Rejected: {made.what} by {made.requested_by}.")
