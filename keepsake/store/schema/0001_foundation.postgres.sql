CREATE EXTENSION IF NOT EXISTS vector;

-- Untyped, because models differ in dimension; each model brings its own partial index (Postgres.index_model).
CREATE TABLE vectors (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    model BIGINT NOT NULL,
    vec halfvec NOT NULL,
    text_hash TEXT NOT NULL,
    seq BIGINT NOT NULL,
    bits VARBIT GENERATED ALWAYS AS (binary_quantize(vec)) STORED,
    PRIMARY KEY (org, bank, memory)
) PARTITIONED;
-- The signs of a bank's vectors lie side by side in here, however its rows are strewn over the partition.
CREATE INDEX vectors_by_model ON vectors (org, bank, model) INCLUDE (memory, bits);

CREATE TABLE search_docs (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    id BIGINT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    concepts TEXT NOT NULL,
    facts TEXT NOT NULL,
    files TEXT NOT NULL,
    context TEXT NOT NULL,
    length BIGINT NOT NULL,
    tsv tsvector NOT NULL,
    PRIMARY KEY (org, bank, id)
) PARTITIONED;
-- Every word carries its bank's prefix, so a posting list never mixes banks. Without fastupdate no search has to
-- read through a list of pending entries.
CREATE INDEX search_docs_by_word ON search_docs USING gin (tsv) WITH (fastupdate = off);

-- Rows that are updated again and again stay on their page.
DO $$
BEGIN
    FOR n IN 0..15 LOOP
        EXECUTE format('ALTER TABLE terms_%s SET (fillfactor = 70)', n);
    END LOOP;
END $$;
ALTER TABLE bank_seq SET (fillfactor = 50);
ALTER TABLE audit_heads SET (fillfactor = 50);

-- Roles belong to the whole server, so another database of ours may have made them, perhaps at this moment.
DO $$
DECLARE
    role_name TEXT;
    -- Since PostgreSQL 16 whoever makes a role is a member of it without the right to take it on.
    needed TEXT := CASE WHEN current_setting('server_version_num')::INT < 160000 THEN 'MEMBER' ELSE 'SET' END;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['keepsake_app', 'keepsake_claim'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
        IF NOT pg_has_role(role_name, needed) THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', role_name);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role_name);
    END LOOP;
END $$;

-- A setting that was set in an earlier transaction reads as '' afterwards, not as NULL.
CREATE FUNCTION keepsake_org() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('keepsake.org', true), '')::BIGINT;

-- What keepsake_claim may see across orgs; a later migration adds its own tables with this.
CREATE FUNCTION keepsake_shared(target REGCLASS) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO keepsake_claim', target);
    EXECUTE format('CREATE POLICY shared ON %s TO keepsake_claim USING (true)', target);
END $$;

-- Gives every table its rights and, where it has an org, its policy. Runs at the end of every migration, so no
-- table can be forgotten. Partitions get no rights: they are reached through their parent and its policy only.
CREATE FUNCTION keepsake_secure() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    target RECORD;
BEGIN
    FOR target IN
        SELECT c.oid::REGCLASS AS name, c.relrowsecurity AS is_secure,
            EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org') AS has_org,
            c.relname IN ('meta', 'nodes') OR has_table_privilege('keepsake_app', c.oid, 'SELECT') AS app_is_done,
            has_table_privilege('keepsake_claim', c.oid, 'SELECT') AS claim_is_done
        FROM pg_class c WHERE c.relnamespace = current_schema()::REGNAMESPACE AND c.relkind IN ('r', 'p')
            AND NOT c.relispartition AND c.relname <> 'migrations'
            AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
    LOOP
        IF NOT target.app_is_done THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO keepsake_app', target.name);
        END IF;
        IF NOT target.has_org AND NOT target.claim_is_done THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO keepsake_claim', target.name);
        END IF;
        IF target.has_org AND NOT target.is_secure THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target.name);
            EXECUTE format('CREATE POLICY org ON %s TO keepsake_app USING (org = keepsake_org())', target.name);
        END IF;
    END LOOP;
END $$;

SELECT keepsake_shared('orgs'), keepsake_shared('jobs'), keepsake_shared('api_keys');

-- `@@` is not leakproof, so under a policy it could not use the index; these functions ask for the org themselves.
-- Two of them, because a plan that does not know the words cannot choose between index and walk; the caller does.
CREATE FUNCTION keepsake_search_few(of_org BIGINT, of_bank BIGINT, query TSQUERY, most BIGINT)
RETURNS TABLE (id BIGINT, title TEXT, body TEXT, context TEXT, length BIGINT)
LANGUAGE sql STABLE SECURITY DEFINER SET enable_seqscan = off SET enable_indexscan = off
BEGIN ATOMIC
    -- The bank prunes partitions; hiding the org from the primary key leaves the words' index as the only way.
    WITH hits AS MATERIALIZED (
        SELECT d.id, d.title, d.body, d.context, d.length FROM search_docs d
        WHERE d.tsv @@ query AND d.org + 0 = of_org AND of_org = keepsake_org() AND d.bank = of_bank
    )
    SELECT h.id, h.title, h.body, h.context, h.length FROM hits h ORDER BY h.id DESC LIMIT most;
END;
CREATE FUNCTION keepsake_search_many(of_org BIGINT, of_bank BIGINT, query TSQUERY, most BIGINT)
RETURNS TABLE (id BIGINT, title TEXT, body TEXT, context TEXT, length BIGINT)
LANGUAGE sql STABLE SECURITY DEFINER SET enable_bitmapscan = off SET enable_seqscan = off SET enable_sort = off
BEGIN ATOMIC
    SELECT d.id, d.title, d.body, d.context, d.length FROM search_docs d
    WHERE d.tsv @@ query AND d.org = of_org AND of_org = keepsake_org() AND d.bank = of_bank
    ORDER BY d.id DESC LIMIT most;
END;
REVOKE EXECUTE ON FUNCTION keepsake_search_few, keepsake_search_many FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keepsake_search_few, keepsake_search_many TO keepsake_app;
