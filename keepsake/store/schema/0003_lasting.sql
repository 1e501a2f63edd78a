-- What outlasts a job or a killed process: budget holds that expire, how far consolidation came, an event's own time.
-- changes rows of: handed_out

-- What was handed out is noted with the counters now: nobody waits for it to be durable.
DROP TABLE handed_out;

-- The moment that came with a memory; `happened_from` and `happened_to` are the time its text speaks of.
ALTER TABLE memories ADD COLUMN event_at BIGINT;

-- One row for each call of a model that runs: whoever dies with it must not hold the tokens for ever.
CREATE TABLE holds (
    org BIGINT NOT NULL,
    id TEXT NOT NULL,
    holder TEXT NOT NULL,
    period TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    -- What was surely sent: charged when nobody tells what the call cost.
    sent BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (org, id)
);

-- How far a bank has been consolidated.
ALTER TABLE bank_seq ADD COLUMN seen_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE bank_seq ADD COLUMN seen_id BIGINT NOT NULL DEFAULT 0;
