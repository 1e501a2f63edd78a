-- How many memories a bank holds, by kind and by when it learned them, without reading them: a page counts 100,000.
CREATE INDEX memories_held ON memories (org, bank, kind, id) WHERE superseded_at IS NULL AND state = 'live';
-- What is of rare trust is found without reading the rest.
DROP INDEX memories_by_type;
CREATE INDEX memories_by_type ON memories (org, bank, fact_type, trust, id);
-- When memories last changed, which tells whether a mental model is stale.
CREATE INDEX memories_by_seq ON memories (org, bank, seq);
CREATE INDEX memories_superseded ON memories (org, bank, superseded_at) WHERE superseded_at IS NOT NULL;
