
-- The same searches as before, with the concepts, facts and files that observations have.
DROP FUNCTION keepsake_search_few(BIGINT, BIGINT, TSQUERY, BIGINT);
DROP FUNCTION keepsake_search_many(BIGINT, BIGINT, TSQUERY, BIGINT);
CREATE FUNCTION keepsake_search_few(of_org BIGINT, of_bank BIGINT, query TSQUERY, most BIGINT)
RETURNS TABLE (id BIGINT, title TEXT, body TEXT, context TEXT, length BIGINT, more TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET enable_seqscan = off SET enable_indexscan = off
BEGIN ATOMIC
    WITH hits AS MATERIALIZED (
        SELECT d.id, d.title, d.body, d.context, d.length, d.concepts || d.facts || d.files AS more FROM search_docs d
        WHERE d.tsv @@ query AND d.org + 0 = of_org AND of_org = keepsake_org() AND d.bank = of_bank
    )
    SELECT h.id, h.title, h.body, h.context, h.length, h.more FROM hits h ORDER BY h.id DESC LIMIT most;
END;
CREATE FUNCTION keepsake_search_many(of_org BIGINT, of_bank BIGINT, query TSQUERY, most BIGINT)
RETURNS TABLE (id BIGINT, title TEXT, body TEXT, context TEXT, length BIGINT, more TEXT)
LANGUAGE sql STABLE SECURITY DEFINER SET enable_bitmapscan = off SET enable_seqscan = off SET enable_sort = off
BEGIN ATOMIC
    SELECT d.id, d.title, d.body, d.context, d.length, d.concepts || d.facts || d.files FROM search_docs d
    WHERE d.tsv @@ query AND d.org = of_org AND of_org = keepsake_org() AND d.bank = of_bank
    ORDER BY d.id DESC LIMIT most;
END;

-- Ids that may fit a tree of operators, newest first from below an id on: of summaries, or of all but them.
CREATE FUNCTION keepsake_match(
    of_org BIGINT, of_bank BIGINT, query TSQUERY, summaries BOOLEAN, below BIGINT, most BIGINT
) RETURNS TABLE (id BIGINT)
LANGUAGE sql STABLE SECURITY DEFINER SET enable_seqscan = off SET enable_indexscan = off
BEGIN ATOMIC
    WITH hits AS MATERIALIZED (
        SELECT d.id FROM search_docs d
        WHERE d.tsv @@ query AND d.org + 0 = of_org AND of_org = keepsake_org() AND d.bank = of_bank AND d.id < below
    )
    -- OFFSET 0 keeps the order inside, so that no more memories are looked at than are needed.
    SELECT h.id FROM (SELECT n.id FROM hits n ORDER BY n.id DESC OFFSET 0) h
    WHERE (
        SELECT (m.kind = 'summary') = summaries AND m.state = 'live' AND m.superseded_at IS NULL FROM memories m
        WHERE m.org = of_org AND m.bank = of_bank AND m.id = h.id
    ) LIMIT most;
END;

-- A walk through the graph of a model, planned for the very bank: a plan for any bank would open the graph of every
-- partition. Without fresh statistics the planner takes a bank for tiny, and would sort it whole.
CREATE FUNCTION keepsake_walk(of_org BIGINT, of_bank BIGINT, of_model BIGINT, near HALFVEC, most BIGINT)
RETURNS TABLE (memory BIGINT, away DOUBLE PRECISION)
LANGUAGE plpgsql STABLE SET enable_sort = off
AS $$
BEGIN
    -- Not beside enable_sort: whoever is no superuser may not set there what pgvector has not declared yet.
    PERFORM set_config('hnsw.ef_search', '80', true), set_config('hnsw.iterative_scan', 'relaxed_order', true);
    RETURN QUERY EXECUTE format(
        'SELECT memory, vec::halfvec(%1$s) <#> $1 FROM vectors WHERE org = $2 AND bank = $3 AND model = %2$s'
        ' ORDER BY vec::halfvec(%1$s) <#> $1 LIMIT $4',
        vector_dims(near), of_model
    ) USING near, of_org, of_bank, most;
END
$$;
-- The same without a graph, for a model that holds few: a plan for any model would read the vectors of all.
CREATE FUNCTION keepsake_every(of_org BIGINT, of_bank BIGINT, of_model BIGINT, near HALFVEC, most BIGINT)
RETURNS TABLE (memory BIGINT, away DOUBLE PRECISION)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE 'SELECT memory, vec <#> $1 FROM vectors WHERE org = $2 AND bank = $3 AND model = $4'
        ' ORDER BY 2 LIMIT $5' USING near, of_org, of_bank, of_model, most;
END
$$;

REVOKE EXECUTE ON FUNCTION
    keepsake_search_few, keepsake_search_many, keepsake_match, keepsake_walk, keepsake_every FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    keepsake_search_few, keepsake_search_many, keepsake_match, keepsake_walk, keepsake_every TO keepsake_app;
