-- Artifacts with every version of them, and the conversations of `ask`.
-- What a version says is the text of its source (kind `artifact`, key = the artifact's id, revision = the version): the
-- memories of it stand there with their spans, and are forgotten and redacted like those of any other source.

CREATE TABLE artifacts (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    identifier TEXT NOT NULL,
    title TEXT NOT NULL,
    -- A word such as markdown, html or mermaid.
    type TEXT NOT NULL,
    -- The conversation that it came from, as whoever made it calls that; empty where there is none.
    chat TEXT NOT NULL,
    -- The current version.
    version BIGINT NOT NULL,
    author TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id),
    UNIQUE (org, bank, identifier)
);
CREATE INDEX artifacts_by_time ON artifacts (org, bank, updated_at, id);
CREATE INDEX artifacts_by_chat ON artifacts (org, bank, chat) WHERE chat <> '';

CREATE TABLE artifact_versions (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    artifact BIGINT NOT NULL,
    version BIGINT NOT NULL,
    source BIGINT NOT NULL,
    -- Bytes of its content in UTF-8.
    size BIGINT NOT NULL,
    author TEXT NOT NULL,
    at BIGINT NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (org, bank, artifact, version)
) PARTITIONED;

CREATE TABLE chats (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    title TEXT NOT NULL,
    -- web, cli or mcp.
    source TEXT NOT NULL,
    author TEXT NOT NULL,
    messages BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id)
);
CREATE INDEX chats_by_time ON chats (org, bank, updated_at, id);

CREATE TABLE chat_messages (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    chat BIGINT NOT NULL,
    n BIGINT NOT NULL,
    -- user or assistant.
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    -- JSON: what an answer cites.
    citations TEXT NOT NULL,
    -- The language model that answered, or `rules`; empty for a question.
    made_by TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, chat, n)
) PARTITIONED;

-- Which memories an answer was made from: it goes with the first of them that is forgotten.
CREATE TABLE chat_evidence (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    chat BIGINT NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (org, bank, memory, chat, n)
) PARTITIONED;
CREATE INDEX chat_evidence_by_chat ON chat_evidence (org, bank, chat);
