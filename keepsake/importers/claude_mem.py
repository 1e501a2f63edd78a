"""claude-mem: the observations, summaries and prompts of its SQLite database (looked at: 13.15.3, schema 4 to 49)."""

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

from keepsake.importers import database
from keepsake.importers.database import Row
from keepsake.importers.record import (
    KNOWLEDGE,
    SUMMARY,
    TITLE,
    Broken,
    Found,
    Record,
    Step,
    Steps,
    filled,
    fit,
    listed,
    moment,
    short,
    summed_up,
)

NAME = "claude-mem"
TABLES = ("observations", "session_summaries", "user_prompts")
#: Where it lets its own observer work; what that says is about itself.
_OBSERVER = "observer-sessions"


def place() -> Path:
    """Where its database is, unless it was told otherwise."""
    home = os.environ.get("CLAUDE_MEM_DATA_DIR")
    return (Path(home).expanduser() if home else Path.home() / ".claude-mem") / "claude-mem.db"


def found(path: Path) -> Found:
    """What there is to read."""
    with database.opened(path, TABLES[:1]) as connection:
        return Found(NAME, path, sum(database.count(connection, table) for table in TABLES))


def read(path: Path) -> Steps:
    """Everything that it remembers, each table by time."""
    done = 0
    with database.opened(path, TABLES[:1]) as connection:
        sessions = _sessions(connection)
        for table, made in zip(TABLES, (_observation, _summary, _prompt), strict=True):
            for row in database.rows(connection, table):
                done += 1
                if record := made(row, sessions):
                    yield Step(record, done)
                elif _project(row, sessions) != _OBSERVER:
                    yield Step(Broken(f"{table} {row.get('id')} says nothing"), done)


def _sessions(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """The client's id and the project of each session, by both of its ids."""
    known: dict[str, tuple[str, str]] = {}
    for row in database.rows(connection, "sdk_sessions"):
        # Before schema 17 the columns were called after the first client.
        client = fit(row.get("content_session_id") or row.get("claude_session_id"))
        told = (client, fit(row.get("project")))
        for id in (client, fit(row.get("memory_session_id") or row.get("sdk_session_id"))):
            if id:
                known[id] = told
    return known


def _session(row: Row, sessions: dict[str, tuple[str, str]]) -> tuple[str, str]:
    named = ("memory_session_id", "sdk_session_id", "content_session_id", "claude_session_id")
    id = next((fit(row[name]) for name in named if row.get(name)), "")
    return sessions.get(id, (id, ""))


def _project(row: Row, sessions: dict[str, tuple[str, str]]) -> str:
    """The project of a row; a worktree, `project/tree`, belongs to its project."""
    named = fit(row.get("merged_into_project")) or fit(row.get("project")) or _session(row, sessions)[1]
    return named.partition("/")[0]


def _record(table: str, row: Row, sessions: dict[str, tuple[str, str]], kind: str, text: str) -> Record | None:
    project = _project(row, sessions)
    if not text or project == _OBSERVER:
        return None
    told: dict[str, object] = {"peer": NAME, "peer_id": row["id"], "session": _session(row, sessions)[0]}
    told |= {name: row[name] for name in ("discovery_tokens", "prompt_number", "agent_type") if row.get(name)}
    return Record(
        key=f"{NAME}:{table}:{row['id']}",
        kind=kind,
        text=text,
        project=project,
        session=_session(row, sessions)[0],
        at=moment(row.get("created_at_epoch"), row.get("created_at")),
        metadata=told,
    )


def _observation(row: Row, sessions: dict[str, tuple[str, str]]) -> Record | None:
    facts, concepts = listed(row.get("facts")), listed(row.get("concepts"))
    title = fit(row.get("title"))
    text = fit(row.get("narrative")) or fit(row.get("text")) or "\n".join(facts) or fit(row.get("subtitle")) or title
    type = fit(row.get("type"))
    made = _record("observations", row, sessions, type if type in KNOWLEDGE else "observation", text)
    if made is None:
        return None
    parts: dict[str, object] = {
        "subtitle": fit(row.get("subtitle")),
        "facts": facts,
        "concepts": concepts,
        "files_read": listed(row.get("files_read")),
        "files_modified": listed(row.get("files_modified")),
    }
    return replace(made, subtype=type, title=(title or short(text))[:TITLE], parts=filled(parts))


def _summary(row: Row, sessions: dict[str, tuple[str, str]]) -> Record | None:
    parts: dict[str, object] = {name: told for name in SUMMARY if (told := fit(row.get(name)))}
    made = _record("session_summaries", row, sessions, "summary", summed_up(parts))
    if made is None:
        return None
    # It says `edited` here and `modified` of its observations.
    files = {"files_read": listed(row.get("files_read")), "files_modified": listed(row.get("files_edited"))}
    parts |= {name: paths for name, paths in files.items() if paths}
    return replace(made, title=short(str(parts.get("request", made.text))), parts=parts)


def _prompt(row: Row, sessions: dict[str, tuple[str, str]]) -> Record | None:
    text = fit(row.get("prompt_text"))
    made = _record("user_prompts", row, sessions, "observation", text)
    return made and replace(made, subtype="prompt", title=short(text))
