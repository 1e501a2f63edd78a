-- What is watched: checks and when each runs next, their samples and roll-ups, incidents, anomalies.

CREATE TABLE checks (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- http, tcp, dns, postgres, redis, heartbeat or self.
    kind TEXT NOT NULL,
    -- An address without credentials; empty for what needs none.
    target TEXT NOT NULL,
    -- JSON: what an answer must be like.
    expect TEXT NOT NULL,
    -- 1 where the local owner added it, who may watch private addresses too.
    anywhere BIGINT NOT NULL,
    -- Microseconds, all three.
    every BIGINT NOT NULL,
    timeout BIGINT NOT NULL,
    grace BIGINT NOT NULL,
    -- Tries more before a failure counts, failures in a row that open an incident, successes that resolve it.
    retries BIGINT NOT NULL,
    open_after BIGINT NOT NULL,
    resolve_after BIGINT NOT NULL,
    -- SHA-256 of a heartbeat's token.
    token TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    -- The time of the next run, and when someone should look: then, or when the lease of whoever runs it is over.
    due_at BIGINT NOT NULL,
    wake_at BIGINT NOT NULL,
    -- Each claim has a number and a holder: the fence against a former one.
    run BIGINT NOT NULL,
    holder TEXT NOT NULL,
    -- new, up or down, since when; successes in a row, or failures as a negative number.
    state TEXT NOT NULL,
    since BIGINT NOT NULL,
    streak BIGINT NOT NULL,
    -- How often the open incident, or the last one, came back.
    flaps BIGINT NOT NULL,
    last_at BIGINT,
    latency BIGINT NOT NULL,
    reason TEXT NOT NULL,
    -- Up to which hour its samples are rolled up.
    rolled_to BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id)
);
CREATE UNIQUE INDEX checks_by_name ON checks (org, bank, name) WHERE removed_at IS NULL;
CREATE INDEX checks_due ON checks (wake_at);
CREATE UNIQUE INDEX checks_by_token ON checks (token) WHERE token <> '';

CREATE TABLE check_results (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    check_id BIGINT NOT NULL,
    -- The time it was due: one result for each.
    at BIGINT NOT NULL,
    ok BIGINT NOT NULL,
    latency BIGINT NOT NULL,
    PRIMARY KEY (org, bank, check_id, at)
) PARTITIONED;

CREATE TABLE check_hours (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    check_id BIGINT NOT NULL,
    hour BIGINT NOT NULL,
    runs BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    -- Median and spread of the latency of what succeeded; -1 where nothing did.
    latency BIGINT NOT NULL,
    spread BIGINT NOT NULL,
    PRIMARY KEY (org, bank, check_id, hour)
) PARTITIONED;

CREATE TABLE incidents (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    check_id BIGINT NOT NULL,
    -- As the check was called and what it watched then.
    name TEXT NOT NULL,
    target TEXT NOT NULL,
    reason TEXT NOT NULL,
    opened_at BIGINT NOT NULL,
    resolved_at BIGINT,
    flaps BIGINT NOT NULL,
    acknowledged_at BIGINT,
    acknowledged_by TEXT NOT NULL,
    -- The memory that tells of it.
    memory BIGINT,
    -- JSON: earlier incidents like it, as recall found them.
    earlier TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, id)
);
CREATE UNIQUE INDEX incidents_one_open ON incidents (org, bank, check_id) WHERE resolved_at IS NULL;
CREATE INDEX incidents_by_check ON incidents (org, bank, check_id, opened_at);
CREATE INDEX incidents_by_time ON incidents (org, bank, opened_at);
CREATE INDEX incidents_by_memory ON incidents (org, bank, memory);

CREATE TABLE incident_notes (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    incident BIGINT NOT NULL,
    id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    -- 1 where its author may write memories, so that the incident's memory tells it too.
    told BIGINT NOT NULL,
    PRIMARY KEY (org, bank, incident, id)
);

CREATE TABLE anomalies (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    check_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- latency (microseconds) or errors (share of runs).
    metric TEXT NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    expected DOUBLE PRECISION NOT NULL,
    spread DOUBLE PRECISION NOT NULL,
    -- Runs that the value was made of, hours of history that it was held against, and which hours those are.
    samples BIGINT NOT NULL,
    history BIGINT NOT NULL,
    season TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (org, bank, id)
);
CREATE UNIQUE INDEX anomalies_one_open ON anomalies (org, bank, check_id, metric) WHERE ended_at IS NULL;
CREATE INDEX anomalies_by_time ON anomalies (org, bank, started_at);
