-- Capture: what coding clients told, the sessions it belongs to, and the files that memories touch.

-- The inbox of hooks. A hook makes no ids, and knows no bank: the job `observe` does.
CREATE TABLE events (
    org BIGINT NOT NULL,
    session TEXT NOT NULL,
    key TEXT NOT NULL,
    -- Not in the key: VS Code runs the hooks of Claude Code beside its own, and both tell the same event.
    client TEXT NOT NULL,
    -- When it happened, by the client's clock, and when we were told.
    at BIGINT NOT NULL,
    told_at BIGINT NOT NULL,
    event TEXT NOT NULL,
    -- JSON of core/envelope.py, without secrets; empty once it has become memories.
    envelope TEXT NOT NULL,
    -- The project it belongs to: JSON of core/project.py.
    project TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (org, session, key)
);
CREATE INDEX events_to_do ON events (org, at, told_at) WHERE state = 'new';
CREATE INDEX events_by_time ON events (org, state, at);

CREATE TABLE sessions (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    -- The client's own id of it.
    key TEXT NOT NULL,
    client TEXT NOT NULL,
    cwd TEXT NOT NULL,
    branch TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    ended_at BIGINT,
    -- The memory that sums it up.
    summary BIGINT,
    PRIMARY KEY (org, bank, id),
    UNIQUE (org, bank, key)
);
CREATE INDEX sessions_by_time ON sessions (org, bank, last_at);

-- Which files a memory read or wrote, relative to the root of the project.
CREATE TABLE memory_files (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    path TEXT NOT NULL,
    wrote BIGINT NOT NULL,
    at BIGINT NOT NULL,
    -- git's name for the content that the file had then; empty when it is not known.
    blob TEXT NOT NULL,
    -- When the file was first seen with another content, on disk, than any memory tells.
    changed_at BIGINT,
    PRIMARY KEY (org, bank, memory, path, wrote)
) PARTITIONED;
CREATE INDEX memory_files_by_path ON memory_files (org, bank, path, wrote, at);
