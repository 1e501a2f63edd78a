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

-- Keyed hashes of text that was handed to a principal in a bank; never the text.
CREATE TABLE IF NOT EXISTS handed_out (
    digest TEXT PRIMARY KEY,
    -- The memory whose text it is, or 0 for a text that was made for an answer.
    memory BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
