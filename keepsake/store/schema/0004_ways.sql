-- A question about a time finds what was said then, and what speaks of it, without a word in common.
-- The expression is `SAID_AT` of store/memories.py.
CREATE INDEX memories_by_time ON memories
    (org, bank, coalesce(event_at, CASE WHEN happened_to IS NULL THEN happened_from END, learned_at));
CREATE INDEX memories_by_happening ON memories (org, bank, happened_from) WHERE happened_to IS NOT NULL;

-- All that a walk from a memory to its entities or its insights asks for, so that SQLite takes this way and no other.
DROP INDEX memory_entities_by_memory;
CREATE INDEX memory_entities_by_memory ON memory_entities (org, bank, memory, entity);
DROP INDEX memory_links_by_target;
CREATE INDEX memory_links_by_target ON memory_links (org, bank, target, origin, why);

-- Whoever deletes a memory looks for what it took the place of.
CREATE INDEX memories_superseded_by ON memories (org, bank, superseded_by) WHERE superseded_by IS NOT NULL;
