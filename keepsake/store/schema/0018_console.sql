-- What people look at: what a memory took the place of, and what is pinned. Few of many, so the indexes stay small.
CREATE INDEX memories_replacing ON memories (org, bank, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_pinned ON memories (org, bank, id) WHERE pinned = 1;
