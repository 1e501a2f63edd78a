-- Common to both stores. BLOB is a domain over bytea in PostgreSQL; PARTITIONED becomes PARTITION BY HASH (bank) there.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE nodes (
    slot BIGINT PRIMARY KEY,
    holder TEXT NOT NULL,
    lease_until BIGINT NOT NULL,
    last_id BIGINT NOT NULL
);

CREATE TABLE orgs (
    org BIGINT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    external TEXT UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE banks (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    mission TEXT NOT NULL,
    disposition TEXT NOT NULL,
    uuid TEXT NOT NULL,
    ws_hex TEXT NOT NULL,
    repo TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank),
    UNIQUE (org, uuid),
    UNIQUE (org, ws_hex)
);

CREATE TABLE bank_names (
    org BIGINT NOT NULL,
    name TEXT NOT NULL,
    bank BIGINT NOT NULL,
    PRIMARY KEY (org, name)
);

CREATE TABLE bank_seq (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    purges BIGINT NOT NULL,
    PRIMARY KEY (org, bank)
);

CREATE TABLE sources (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    uri TEXT NOT NULL,
    revision TEXT NOT NULL,
    hash TEXT NOT NULL,
    text TEXT NOT NULL,
    meta TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    replaced_by BIGINT,
    PRIMARY KEY (org, bank, id),
    UNIQUE (org, bank, kind, key, revision)
);

CREATE TABLE memories (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    fact_type TEXT NOT NULL,
    subtype TEXT NOT NULL,
    title TEXT NOT NULL,
    slug TEXT NOT NULL,
    text TEXT NOT NULL,
    category TEXT NOT NULL,
    parts TEXT NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    happened_from BIGINT,
    happened_to BIGINT,
    learned_at BIGINT NOT NULL,
    superseded_at BIGINT,
    superseded_by BIGINT,
    parent BIGINT,
    source BIGINT,
    span TEXT NOT NULL,
    author TEXT NOT NULL,
    trust TEXT NOT NULL,
    state TEXT NOT NULL,
    pinned BIGINT NOT NULL,
    proof BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    text_hash TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id)
) PARTITIONED;
CREATE INDEX memories_by_id ON memories (org, id);
CREATE INDEX memories_by_source ON memories (org, bank, source);
CREATE INDEX memories_by_type ON memories (org, bank, fact_type, id);

CREATE TABLE memory_tags (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    tag TEXT NOT NULL,
    memory BIGINT NOT NULL,
    PRIMARY KEY (org, bank, tag, memory)
) PARTITIONED;
CREATE INDEX memory_tags_by_memory ON memory_tags (org, bank, memory);

CREATE TABLE memory_links (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    origin BIGINT NOT NULL,
    target BIGINT NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (org, bank, origin, target, why)
) PARTITIONED;
CREATE INDEX memory_links_by_target ON memory_links (org, bank, target);

CREATE TABLE terms (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    term TEXT NOT NULL,
    docs BIGINT NOT NULL,
    total BIGINT NOT NULL,
    PRIMARY KEY (org, bank, term)
) PARTITIONED;

CREATE TABLE embedding_models (
    model BIGINT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    dim BIGINT NOT NULL,
    zero DOUBLE PRECISION NOT NULL,
    one DOUBLE PRECISION NOT NULL,
    state TEXT NOT NULL
);

CREATE TABLE suppressions (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    digest TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, digest)
);

CREATE TABLE jobs (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    input TEXT NOT NULL,
    state TEXT NOT NULL,
    version BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    holder TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    progress DOUBLE PRECISION NOT NULL,
    not_before BIGINT NOT NULL,
    ceiling BIGINT NOT NULL,
    result TEXT NOT NULL,
    error TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id),
    UNIQUE (org, bank, kind, key)
);
CREATE INDEX jobs_to_do ON jobs (state, not_before);

CREATE TABLE api_keys (
    org BIGINT NOT NULL,
    id BIGINT NOT NULL,
    sha256 TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    scopes TEXT NOT NULL,
    tier TEXT NOT NULL,
    banks TEXT NOT NULL,
    may_destroy BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (org, id)
);
CREATE UNIQUE INDEX api_keys_one_active_per_name ON api_keys (org, name) WHERE revoked_at IS NULL;

CREATE TABLE audit_heads (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    n BIGINT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (org, bank)
);

CREATE TABLE audit (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    n BIGINT NOT NULL,
    at BIGINT NOT NULL,
    principal TEXT NOT NULL,
    operation TEXT NOT NULL,
    targets TEXT NOT NULL,
    digest TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (org, bank, n)
);

CREATE TABLE receipts (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    principal TEXT NOT NULL,
    operation TEXT NOT NULL,
    memories TEXT NOT NULL,
    counts TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (org, bank, id)
);

INSERT INTO orgs (org, name, external, created_at) VALUES (1, 'local', NULL, 0);
