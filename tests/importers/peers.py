"""Databases of other tools, made with the tables that these tools make."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

AT = 1_772_366_400_000
ISO = "2026-03-01T12:00:00.000Z"
SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0" + "aB3dE5"

CLAUDE_MEM = """
CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE NOT NULL, applied_at TEXT NOT NULL);
CREATE TABLE sdk_sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, memory_session_id TEXT UNIQUE,
  project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude', user_prompt TEXT, started_at TEXT NOT NULL,
  started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER,
  status TEXT NOT NULL DEFAULT 'active' CHECK(status IN ('active', 'completed', 'failed')),
  worker_port INTEGER, prompt_counter INTEGER DEFAULT 0, custom_title TEXT);
CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT,
  type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
  files_modified TEXT, prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL, content_hash TEXT, generated_by_model TEXT, relevance_count INTEGER DEFAULT 0,
  merged_into_project TEXT, agent_type TEXT, agent_id TEXT, metadata TEXT,
  FOREIGN KEY(memory_session_id) REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE session_summaries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, request TEXT,
  investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT,
  prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL, merged_into_project TEXT,
  FOREIGN KEY(memory_session_id) REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE user_prompts (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_db_id INTEGER, content_session_id TEXT NOT NULL,
  prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL, FOREIGN KEY(session_db_id) REFERENCES sdk_sessions(id) ON DELETE CASCADE);
"""
#: As its first public versions made them.
CLAUDE_MEM_OLD = """
CREATE TABLE sdk_sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, claude_session_id TEXT UNIQUE NOT NULL, sdk_session_id TEXT UNIQUE,
  project TEXT NOT NULL, user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL,
  completed_at TEXT, completed_at_epoch INTEGER, status TEXT NOT NULL DEFAULT 'active');
CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT, sdk_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT NOT NULL,
  type TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
"""
KIRO = """
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL UNIQUE, project TEXT NOT NULL,
  user_prompt TEXT NOT NULL, memory_session_id TEXT, status TEXT DEFAULT 'active', started_at TEXT NOT NULL,
  started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER);
CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, type TEXT NOT NULL,
  title TEXT NOT NULL, subtitle TEXT, text TEXT, narrative TEXT, facts TEXT, concepts TEXT, files_read TEXT,
  files_modified TEXT, prompt_number INTEGER NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL,
  last_accessed_epoch INTEGER, is_stale INTEGER DEFAULT 0, content_hash TEXT, discovery_tokens INTEGER DEFAULT 0,
  auto_category TEXT);
CREATE TABLE summaries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, project TEXT NOT NULL, request TEXT,
  investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, notes TEXT, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL, discovery_tokens INTEGER DEFAULT 0);
CREATE TABLE prompts (
  id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, project TEXT NOT NULL,
  prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);
CREATE TABLE checkpoints (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id INTEGER NOT NULL, project TEXT NOT NULL, task TEXT NOT NULL,
  progress TEXT, next_steps TEXT, open_questions TEXT, relevant_files TEXT, context_snapshot TEXT,
  created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, FOREIGN KEY (session_id) REFERENCES sessions(id));
"""


def made(path: Path, schema: str) -> Path:
    """A database with these tables, in WAL mode as both tools want it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(schema)
    return path


def add(path: Path, table: str, **values: object) -> None:
    """One more row."""
    with closing(sqlite3.connect(path)) as connection:
        put(connection, table, **values)


def put(connection: sqlite3.Connection, table: str, **values: object) -> None:
    """One more row, and the transaction's end."""
    told = {"created_at": ISO, "created_at_epoch": AT} | values if table != "sdk_sessions" else values
    marks = ", ".join("?" * len(told))
    connection.execute(f"INSERT INTO {table} ({', '.join(told)}) VALUES ({marks})", list(told.values()))
    connection.commit()


def claude_mem(folder: Path) -> Path:
    """A database of claude-mem with one of everything."""
    path = made(folder / "claude-mem.db", CLAUDE_MEM)
    started = {"started_at": ISO, "started_at_epoch": AT}
    add(path, "sdk_sessions", content_session_id="c-1", memory_session_id="m-1", project="shop", **started)
    add(
        path,
        "observations",
        memory_session_id="m-1",
        project="shop",
        type="bugfix",
        title="Cart total rounds correctly",
        subtitle="Cents were lost",
        narrative="The cart added floats; it now adds integer cents.",
        facts=json.dumps(["cart.ts adds integer cents", "tests cover 0.1 + 0.2"]),
        concepts=json.dumps(["problem-solution"]),
        files_read=json.dumps(["src/money.ts"]),
        files_modified=json.dumps(["src/cart.ts"]),
        prompt_number=1,
        discovery_tokens=4200,
    )
    add(
        path,
        "observations",
        memory_session_id="m-1",
        project="shop",
        type="decision",
        title="Money is kept in cents",
        narrative="All amounts are integers of the smallest unit.",
        created_at_epoch=AT + 60_000,
    )
    add(
        path,
        "session_summaries",
        memory_session_id="m-1",
        project="shop",
        request="Fix the rounding",
        learned="Floats lose cents",
        completed="Cart uses cents",
        next_steps="Migrate invoices",
        files_edited=json.dumps(["src/cart.ts"]),
        created_at_epoch=AT + 120_000,
    )
    add(path, "user_prompts", content_session_id="c-1", prompt_number=1, prompt_text="Fix the rounding in the cart")
    return path


def kiro(folder: Path) -> Path:
    """A database of kiro-memory with one of everything."""
    path = made(folder / "contextkit.db", KIRO)
    add(
        path,
        "observations",
        memory_session_id="s-9",
        project="my-api",
        type="file-write",
        title="Modified auth.ts",
        subtitle="edit src/auth.ts",
        text="Edit src/auth.ts old→new",
        narrative="Modified auth.ts at src/auth.ts, updating 45 lines",
        facts="src/auth.ts",
        concepts="security, api, middleware",
        files_modified="src/auth.ts",
        prompt_number=0,
        discovery_tokens=28,
    )
    add(
        path,
        "observations",
        memory_session_id="sdk-1772366400000",
        project="my-api",
        type="constraint",
        title="No sessions in cookies",
        text="Sessions live in Redis, never in cookies.",
        facts=json.dumps({"knowledgeType": "constraint", "severity": "hard", "reason": "audit finding 7"}),
        prompt_number=0,
    )
    add(
        path,
        "summaries",
        session_id="s-9",
        project="my-api",
        request="my-api: authentication",
        completed="Modified auth.ts, Modified routes.ts",
    )
    add(path, "prompts", content_session_id="s-9", project="my-api", prompt_number=1, prompt_text="Add JWT to the API")
    return path
