-- Counts and sessions: shared, but never awaited for durability. SQLite keeps them in a file of their own.

CREATE TABLE IF NOT EXISTS counters (
    key_id BIGINT NOT NULL,
    minute BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    PRIMARY KEY (key_id, minute)
);

CREATE TABLE IF NOT EXISTS key_uses (
    key_id BIGINT PRIMARY KEY,
    last_used BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS mcp_sessions (
    digest TEXT PRIMARY KEY,
    dialect TEXT NOT NULL,
    principal TEXT NOT NULL,
    version TEXT NOT NULL,
    bank TEXT NOT NULL,
    server TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
