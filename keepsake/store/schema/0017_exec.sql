-- What an operator has enrolled for agents to ask for. `claims` is raised by whoever starts one, so that two who count
-- what runs wait for each other.
CREATE TABLE exec_tools (
    org BIGINT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    definition TEXT NOT NULL,
    enrolled_by TEXT NOT NULL,
    enrolled_at BIGINT NOT NULL,
    claims BIGINT NOT NULL,
    PRIMARY KEY (org, name)
);

-- Runs that were asked for. `same` is NULL once its window has passed: within it a request is the same run.
CREATE TABLE invocations (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    tool TEXT NOT NULL,
    version TEXT NOT NULL,
    effect TEXT NOT NULL,
    policy TEXT NOT NULL,
    arguments TEXT NOT NULL,
    principal TEXT NOT NULL,
    credential TEXT NOT NULL,
    person BIGINT,
    reason TEXT NOT NULL,
    readings TEXT NOT NULL,
    same TEXT,
    window_until BIGINT NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decisions TEXT NOT NULL,
    holder TEXT NOT NULL,
    lease_until BIGINT NOT NULL,
    cancel_at BIGINT,
    started_at BIGINT,
    ended_at BIGINT,
    exit_code BIGINT,
    output_bytes BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    settled_by TEXT NOT NULL,
    PRIMARY KEY (org, id),
    UNIQUE (org, same)
);
CREATE INDEX invocations_by_state ON invocations (state, lease_until);
CREATE INDEX invocations_by_tool ON invocations (org, tool, state);

-- What runs have printed so far, without secrets.
CREATE TABLE exec_output (
    org BIGINT NOT NULL,
    invocation BIGINT NOT NULL,
    n BIGINT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (org, invocation, n)
);
