-- The walk looks no further than it is asked for: every step comes cold from memory, and words bring the rest.
CREATE OR REPLACE FUNCTION keepsake_walk(of_org BIGINT, of_bank BIGINT, of_model BIGINT, near HALFVEC, most BIGINT)
RETURNS TABLE (memory BIGINT, away DOUBLE PRECISION)
LANGUAGE plpgsql STABLE SET enable_sort = off
AS $$
BEGIN
    -- Not beside enable_sort: whoever is no superuser may not set there what pgvector has not declared yet.
    PERFORM set_config('hnsw.ef_search', least(1000, greatest(40, most))::text, true),
        set_config('hnsw.iterative_scan', 'relaxed_order', true);
    RETURN QUERY EXECUTE format(
        'SELECT memory, vec::halfvec(%1$s) <#> $1 FROM vectors WHERE org = $2 AND bank = $3 AND model = %2$s'
        ' ORDER BY vec::halfvec(%1$s) <#> $1 LIMIT $4',
        vector_dims(near), of_model
    ) USING near, of_org, of_bank, most;
END
$$;
