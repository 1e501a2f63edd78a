"""The inbox of hooks: what coding clients told, until the job `observe` makes memories of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from keepsake.core import bank_name
from keepsake.core.clock import DAY
from keepsake.core.envelope import Envelope, packed, unpacked
from keepsake.core.project import Project, is_placed
from keepsake.store import wanting
from keepsake.store.engine import Row, Tx

#: The job that empties an org's inbox; there is one, so it needs no id that a hook would have to make.
JOB, JOB_ID = "observe", 1
#: How long an event is known to have been told, so that it is not taken twice.
KEPT_FOR = 30 * DAY


@dataclass(frozen=True, slots=True)
class Event:
    """One event and the project that it belongs to."""

    envelope: Envelope
    project: Project


def written(event: Event) -> str:
    """An event as one line of the spool."""
    return json.dumps({"envelope": packed(event.envelope), "project": asdict(event.project)}, ensure_ascii=False)


def parsed(line: str) -> Event:
    """The event of a line; raises ValueError for what is none."""
    try:
        given = json.loads(line)
        project = Project(**given["project"])
        is_one = all(isinstance(part, str) for part in asdict(project).values())
        bank_name.checked(project.name)
        if not is_placed(project.identity):
            bank_name.checked(project.identity)
        envelope = unpacked(given["envelope"])
    except (KeyError, TypeError) as error:
        raise ValueError("it is no event") from error
    if not is_one or not project.identity or not project.name:
        raise ValueError("it is no event")
    return Event(envelope, project)


async def put(tx: Tx, org: int, told: Sequence[Event], now: int) -> int:
    """Keep new events, each once however often it is told, and ask for them to be looked at; tells how many are new."""
    new = 0
    for n, event in enumerate(told):
        envelope = event.envelope
        new += await tx.run(
            "INSERT INTO events (org, session, key, client, at, told_at, event, envelope, project, state)"
            " VALUES (:org, :session, :key, :client, :at, :told_at, :event, :envelope, :project, 'new')"
            " ON CONFLICT (org, session, key) DO NOTHING",
            org=org,
            session=envelope.session,
            key=envelope.key,
            client=envelope.client,
            at=envelope.at,
            told_at=now + n,
            event=envelope.event,
            envelope=packed(envelope),
            project=json.dumps(asdict(event.project), ensure_ascii=False),
        )
    if new:
        await wanting.ask(tx, org, 0, JOB, JOB_ID, now)
    return new


async def waiting(tx: Tx, org: int, limit: int) -> list[Event]:
    """The oldest events that nobody has looked at."""
    rows = await tx.all(
        "SELECT envelope, project FROM events WHERE org = :org AND state = 'new' ORDER BY at, told_at LIMIT :limit",
        org=org,
        limit=limit,
    )
    return [of(row) for row in rows]


def of(row: Row) -> Event:
    """The event of a row; raises ValueError for what is none."""
    return Event(unpacked(row["envelope"]), Project(**json.loads(row["project"])))


async def doubt(tx: Tx, org: int) -> Row | None:
    """Put the oldest event aside before it is looked at alone: if it is what fails, it fails once."""
    return await tx.one(
        "UPDATE events SET state = 'doubtful' WHERE org = :org AND (session, key) = (SELECT session, key FROM events"
        " WHERE org = :org AND state = 'new' ORDER BY at, told_at LIMIT 1) RETURNING envelope, project",
        org=org,
    )


async def done(tx: Tx, org: int, told: Sequence[Event]) -> None:
    """Note that events have become memories; what they said stays in these alone."""
    await tx.many(
        "UPDATE events SET state = 'done', envelope = '' WHERE org = :org AND session = :session AND key = :key",
        [{"org": org, "session": event.envelope.session, "key": event.envelope.key} for event in told],
    )


async def expire(tx: Tx, org: int, now: int) -> int:
    """Drop the keys of events that are so old that no client tells them again; tells how many."""
    return await tx.run(
        "DELETE FROM events WHERE org = :org AND state <> 'new' AND at < :before", org=org, before=now - KEPT_FOR
    )


async def bank_of(tx: Tx, org: int, project: Project) -> tuple[int, str] | None:
    """The bank of a project and its name; None when it has none yet."""
    row = await tx.one(
        "SELECT b.bank AS bank, b.name AS name FROM bank_names n JOIN banks b ON b.org = n.org AND b.bank = n.bank"
        " WHERE n.org = :org AND n.name = :name",
        org=org,
        name=project.identity,
    )
    return (int(row["bank"]), str(row["name"])) if row else None
