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

-- What came from outside and was handed to someone lately: whoever approves their wishes should know of it.
CREATE TABLE IF NOT EXISTS readings (
    -- Org and principal.
    reader TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- A memory's bank and id, or a page's address.
    what TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (reader, kind, what)
);

-- Who was handed which memory, how often and when last; never what it says. No `org`: counters know no
-- row-level security, for they are written behind many answers at once.
CREATE TABLE IF NOT EXISTS recalls (
    org_id BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    principal TEXT NOT NULL,
    times BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    -- How well it answered, 0 to 1; 0 where nothing was asked.
    score DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (org_id, memory, principal)
);

-- Where the nodes of a picture of the graph stand: ids and places, so that it is not laid out anew for every reader.
CREATE TABLE IF NOT EXISTS layouts (
    -- A keyed digest of the org, the bank and what was asked for.
    view TEXT PRIMARY KEY,
    -- Of the nodes and edges that it was laid out for.
    digest TEXT NOT NULL,
    -- JSON: each node's share of the width and of the height.
    places TEXT NOT NULL,
    laid_at BIGINT NOT NULL
);
