-- How many memories a bank holds, by kind and by when it learned them, without reading them: a page counts 100,000.
CREATE INDEX memories_held ON memories (org, bank, kind, id) WHERE superseded_at IS NULL AND state = 'live';
