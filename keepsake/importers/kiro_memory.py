"""kiro-memory, later Total Recall: its SQLite database (looked at: 4.0.2, schema 1 to 14)."""

import json
import os
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

NAME = "kiro-memory"
TABLES = ("observations", "summaries", "checkpoints", "prompts")
#: Each of its versions called the file otherwise.
_FILES = ("totalrecall.db", "kiro-memory.db", "contextkit.db")
_FOLDERS = (".totalrecall", ".kiro-memory", ".contextkit")
#: Characters kept of what a tool was given and gave; the narrative tells what came of it.
_DETAIL = 20_000
_CHECKPOINT = {"task": "request", "progress": "completed", "next_steps": "next_steps", "open_questions": "notes"}


def place() -> Path:
    """Where its database is, unless it was told otherwise; of several, the largest, as it chooses itself."""
    names = ("TOTALRECALL_DATA_DIR", "KIRO_MEMORY_DATA_DIR", "CONTEXTKIT_DATA_DIR")
    told = [Path(os.environ[name]).expanduser() for name in names if os.environ.get(name)]
    folders = told or [Path.home() / folder for folder in _FOLDERS]
    there = [path for folder in folders for name in _FILES if (path := folder / name).is_file()]
    return max(there, key=lambda path: path.stat().st_size, default=folders[0] / _FILES[0])


def found(path: Path) -> Found:
    """What there is to read."""
    with database.opened(path, TABLES[:2]) as connection:
        return Found(NAME, path, sum(database.count(connection, table) for table in TABLES))


def read(path: Path) -> Steps:
    """Everything that it remembers, each table by time."""
    done = 0
    with database.opened(path, TABLES[:2]) as connection:
        for table, made in zip(TABLES, (_observation, _summary, _checkpoint, _prompt), strict=True):
            for row in database.rows(connection, table):
                done += 1
                record = made(row)
                yield Step(record or Broken(f"{table} {row.get('id')} says nothing"), done)


def _record(table: str, row: Row, kind: str, text: str) -> Record | None:
    if not text:
        return None
    session = fit(row.get("content_session_id") or row.get("memory_session_id") or str(row.get("session_id") or ""))
    told: dict[str, object] = {"peer": NAME, "peer_id": row["id"], "session": session}
    told |= {name: row[name] for name in ("discovery_tokens", "auto_category", "is_stale") if row.get(name)}
    return Record(
        key=f"{NAME}:{table}:{row['id']}",
        kind=kind,
        text=text,
        project=fit(row.get("project")),
        # Its library gives each observation a session of its own, which ties nothing together.
        session="" if session.startswith("sdk-") else session,
        at=moment(row.get("created_at_epoch"), row.get("created_at")),
        metadata=told,
    )


def _observation(row: Row) -> Record | None:
    narrative, content, title = fit(row.get("narrative")), fit(row.get("text")), fit(row.get("title"))
    type = fit(row.get("type"))
    is_knowledge = type in KNOWLEDGE
    made = _record("observations", row, type if is_knowledge else "observation", narrative or content or title)
    if made is None:
        return None
    parts: dict[str, object] = {
        "subtitle": fit(row.get("subtitle")),
        "concepts": listed(row.get("concepts")),
        "files_read": listed(row.get("files_read")),
        "files_modified": listed(row.get("files_modified")),
        "detail": content[:_DETAIL] if narrative else "",
    }
    parts |= _why(row.get("facts")) if is_knowledge else {"facts": _facts(row.get("facts"))}
    return replace(made, subtype=type, title=(title or short(made.text))[:TITLE], parts=filled(parts))


def _facts(told: object) -> list[str]:
    """Its facts are one text: a path, a command, an address."""
    text = fit(told)
    return listed(text) if text.startswith("[") else [line for line in text.splitlines() if line.strip()]


def _why(told: object) -> dict[str, object]:
    """What it knows about a decision, constraint, heuristic or rejected option, in our words."""
    try:
        known = json.loads(fit(told) or "{}")
    except (ValueError, RecursionError):
        return {"facts": _facts(told)}
    if not isinstance(known, dict):
        return {"facts": _facts(told)}
    alternatives = known.get("alternatives")
    kept: dict[str, object] = {name: fit(known.get(name)) for name in ("severity", "confidence", "context")}
    kept["rationale"] = fit(known.get("reason"))
    kept["alternatives"] = [fit(one) for one in alternatives if fit(one)] if isinstance(alternatives, list) else []
    return kept


def _summary(row: Row) -> Record | None:
    parts: dict[str, object] = {name: told for name in SUMMARY if (told := fit(row.get(name)))}
    made = _record("summaries", row, "summary", summed_up(parts))
    return made and replace(made, title=short(str(parts.get("request", made.text))), parts=parts)


def _checkpoint(row: Row) -> Record | None:
    parts: dict[str, object] = {ours: told for theirs, ours in _CHECKPOINT.items() if (told := fit(row.get(theirs)))}
    made = _record("checkpoints", row, "summary", summed_up(parts))
    if made is None:
        return None
    parts |= filled({"files_read": listed(row.get("relevant_files"))})
    return replace(made, subtype="checkpoint", title=short(str(parts.get("request", made.text))), parts=parts)


def _prompt(row: Row) -> Record | None:
    text = fit(row.get("prompt_text"))
    made = _record("prompts", row, "observation", text)
    return made and replace(made, subtype="prompt", title=short(text))
