-- What someone proposed to change, until it is decided, applied or past its time.
-- `arguments` is emptied when a proposal ends; what it would change is read from the store, never kept here.

CREATE TABLE proposals (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    token_hash TEXT NOT NULL,
    principal TEXT NOT NULL,
    credential TEXT NOT NULL,
    person BIGINT,
    operation TEXT NOT NULL,
    version TEXT NOT NULL,
    effect TEXT NOT NULL,
    place TEXT,
    arguments TEXT NOT NULL,
    redacted TEXT NOT NULL,
    arguments_digest TEXT NOT NULL,
    target_digest TEXT NOT NULL,
    reason TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_by TEXT,
    decided_at BIGINT,
    claimed_at BIGINT,
    ended_at BIGINT,
    outcome TEXT NOT NULL,
    PRIMARY KEY (org, id),
    UNIQUE (org, token_hash)
);
CREATE INDEX proposals_by_state ON proposals (org, state, expires_at);
CREATE INDEX proposals_by_bank ON proposals (org, bank);
