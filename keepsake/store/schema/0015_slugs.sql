-- A memory that was given a readable name is found by it. Not UNIQUE: what corrects a memory takes its name over.
CREATE INDEX memories_by_slug ON memories (org, bank, slug) WHERE slug <> '';
