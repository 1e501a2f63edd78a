-- What a context pack is made of: the summaries and the knowledge of a bank, newest first. The expression is `SAID_AT`
-- of store/memories.py.
CREATE INDEX memories_by_kind ON memories
    (org, bank, kind, coalesce(event_at, CASE WHEN happened_to IS NULL THEN happened_from END, learned_at));
