-- What people look at: what is pinned. Few of many, so the index stays small.
CREATE INDEX memories_pinned ON memories (org, bank, id) WHERE pinned = 1;
