-- What people and agents say of how memories, artifacts and entities belong together. Ids are unique in an org, so one
-- column holds either; the kinds tell where to look. Beside it `memory_links` has what the engine itself found out.

CREATE TABLE relations (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    origin BIGINT NOT NULL,
    target BIGINT NOT NULL,
    type TEXT NOT NULL,
    -- memory, artifact or entity.
    origin_kind TEXT NOT NULL,
    target_kind TEXT NOT NULL,
    note TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank, origin, target, type)
) PARTITIONED;
CREATE INDEX relations_by_target ON relations (org, bank, target);
CREATE INDEX relations_by_time ON relations (org, bank, created_at);

-- What stands in the way, for the brief: few of many.
CREATE INDEX memories_blocking ON memories (org, bank, id) WHERE category = 'blocker';
