-- The memory engine: entities, truth over time, models, directives, and what the language model spent.

CREATE TABLE entities (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- How names are compared: folded, without titles and possessives.
    folded TEXT NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (org, bank, id),
    UNIQUE (org, bank, folded)
);

CREATE TABLE memory_entities (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    entity BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    -- `speaker` said it; `named` is in it.
    role TEXT NOT NULL,
    PRIMARY KEY (org, bank, entity, memory)
) PARTITIONED;
CREATE INDEX memory_entities_by_memory ON memory_entities (org, bank, memory);

-- Which memories stand next to each other: a source, a session, or one context within an hour.
ALTER TABLE memories ADD COLUMN thread TEXT NOT NULL DEFAULT '';
ALTER TABLE memories ADD COLUMN before BIGINT;
CREATE INDEX memories_by_thread ON memories (org, bank, thread, id);
CREATE INDEX memories_by_parent ON memories (org, bank, parent);
CREATE INDEX memories_after ON memories (org, bank, before);
-- What the background has not looked at yet.
CREATE INDEX memories_new ON memories (org, bank, id) WHERE kind = 'note' AND state = 'live';

CREATE TABLE conflicts (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    older BIGINT NOT NULL,
    newer BIGINT NOT NULL,
    why TEXT NOT NULL,
    state TEXT NOT NULL,
    settled_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id),
    UNIQUE (org, bank, older, newer)
);

CREATE TABLE handed_out (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    digest TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, digest)
);

CREATE TABLE mental_models (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    source_query TEXT NOT NULL,
    tags TEXT NOT NULL,
    max_tokens BIGINT NOT NULL,
    refresh_after_consolidation BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id)
);

CREATE TABLE model_versions (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    model TEXT NOT NULL,
    version BIGINT NOT NULL,
    text TEXT NOT NULL,
    -- JSON: for each sentence, the memories it rests on.
    evidence TEXT NOT NULL,
    maker TEXT NOT NULL,
    -- The bank's sequence it was made at: nothing new means nothing to do.
    seq BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, model, version)
);

CREATE TABLE directives (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    priority BIGINT NOT NULL,
    is_active BIGINT NOT NULL,
    tags TEXT NOT NULL,
    trust TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id)
);

CREATE TABLE usage (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    principal TEXT NOT NULL,
    operation TEXT NOT NULL,
    model TEXT NOT NULL,
    tokens_in BIGINT NOT NULL,
    tokens_out BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id)
);
CREATE INDEX usage_by_time ON usage (org, at);

CREATE TABLE budgets (
    org BIGINT NOT NULL,
    -- A principal, or '' for the background's own.
    holder TEXT NOT NULL,
    -- First day of the week (Monday, UTC) or the day itself, as YYYY-MM-DD behind `w` or `d`.
    period TEXT NOT NULL,
    reserved BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    PRIMARY KEY (org, holder, period)
);
