"""`keepsake check`: add, list and remove what is watched."""

from typing import Annotated

import typer

from keepsake.core.errors import BadInput
from keepsake.ops import checks
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask_in

app = typer.Typer(help="Add, list and remove what is watched.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the check.")]
Bank = Annotated[str | None, typer.Option("--bank", metavar="BANK", help="The bank it belongs to.")]


@app.command()
def add(  # noqa: PLR0913  # typer reads a command's options from its parameters
    name: Name,
    *,
    bank: Bank = None,
    http: Annotated[str | None, typer.Option(metavar="URL", help="Watch a page.")] = None,
    tcp: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Watch a port.")] = None,
    dns: Annotated[str | None, typer.Option(metavar="HOST", help="Watch a name.")] = None,
    postgres: Annotated[str | None, typer.Option(metavar="HOST[:PORT]", help="Ping a PostgreSQL.")] = None,
    redis: Annotated[str | None, typer.Option(metavar="HOST[:PORT]", help="Ping a Redis.")] = None,
    heartbeat: Annotated[bool, typer.Option("--heartbeat", help="Wait to be called; the token is shown once.")] = False,
    self: Annotated[bool, typer.Option("--self", help="Watch Keepsake itself.")] = False,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="Expect 200, or 200-299.")] = None,
    contains: Annotated[str | None, typer.Option(metavar="TEXT", help="Expect this text on the page.")] = None,
    tls_days: Annotated[int | None, typer.Option(metavar="DAYS", help="Days left on the certificate.")] = None,
    address: Annotated[list[str] | None, typer.Option(metavar="IP", help="Expect this address of a name.")] = None,
    every: Annotated[int | None, typer.Option(metavar="SECONDS", help="From one run to the next; 60.")] = None,
    timeout: Annotated[int | None, typer.Option(metavar="SECONDS", help="For one try; 10.")] = None,
    grace: Annotated[int | None, typer.Option(metavar="SECONDS", help="How late a heartbeat may be; 30.")] = None,
    retries: Annotated[int | None, typer.Option(metavar="N", help="Tries more before a failure counts; 1.")] = None,
    open_after: Annotated[int | None, typer.Option(metavar="N", help="Failures that open an incident; 2.")] = None,
    resolve_after: Annotated[int | None, typer.Option(metavar="N", help="Successes that resolve it; 2.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Watch a page, a port, a name, a database, a heartbeat, or Keepsake itself."""
    told = {"http": http, "tcp": tcp, "dns": dns, "postgres": postgres, "redis": redis}
    chosen = [kind for kind, target in told.items() if target is not None]
    chosen += [kind for kind, is_asked in (("heartbeat", heartbeat), ("self", self)) if is_asked]
    if len(chosen) != 1:
        raise BadInput("Say what to watch: one of --http, --tcp, --dns, --postgres, --redis, --heartbeat or --self.")
    made = ask_in(
        effective(data_dir, database_url),
        bank,
        checks.add,
        name=name,
        kind=chosen[0],
        target=told.get(chosen[0]),
        status=status,
        contains=contains,
        tls_days=tls_days,
        addresses=address or None,
        every_s=every,
        timeout_s=timeout,
        grace_s=grace,
        retries=retries,
        open_after=open_after,
        resolve_after=resolve_after,
    )
    if as_json:
        show.document(made)
        return
    show.line(f"The check {made.name!r} watches {made.target or made.kind}, every {made.every_s:g} s.")
    if made.token:
        show.line("It waits for `POST /v1/heartbeats/TOKEN`. The token is shown only this once:")
        show.line()
        show.line(f"  {made.token}")


@app.command("list")
def list_(bank: Bank = None, data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List what is watched, how it stands and when it runs next."""
    held = ask_in(effective(data_dir, database_url), bank, checks.list_, limit=1_000)
    if as_json:
        show.document(held)
        return
    if not held.checks:
        show.line("Nothing is watched. `keepsake check add NAME --http URL` adds a check.")
        return
    show.rows(
        ("NAME", "STATE", "KIND", "TARGET", "EVERY", "NEXT RUN"),
        [
            (one.name, one.state, one.kind, one.target, f"{one.every_s:g} s", one.next_at[:19].replace("T", " "))
            for one in held.checks
        ],
    )


@app.command()
def remove(
    name: Name, bank: Bank = None, data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Stop watching something; its incidents stay."""
    gone = ask_in(effective(data_dir, database_url), bank, checks.remove, name=name)
    if as_json:
        show.document(gone)
        return
    show.line(f"The check {gone.name!r} runs no more.")
