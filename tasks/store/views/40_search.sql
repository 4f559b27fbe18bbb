-- Their settings are known only once these libraries are loaded into the session.
select similarity('', ''), '[0]'::vector;

-- Moments that fit some words: whole words first (as they stand or by English stem, in the
-- syntax of web search), then near misses by trigrams, which forgive a misheard letter.
create or replace function reel.search(query text, max_results integer default 20)
returns table (
    score double precision,
    matched text,
    fact_id uuid,
    video_id uuid,
    bucket text,
    key text,
    start_s double precision,
    end_s double precision,
    snippet text
)
language sql
stable
security definer
set search_path = pg_catalog, public, pg_temp
-- Half of the trigrams of a word must be there: one wrong letter in a word of six.
set pg_trgm.word_similarity_threshold = 0.5
as $$
    with asked as (
        select
            websearch_to_tsquery('simple'::regconfig, query)
                || websearch_to_tsquery('english'::regconfig, query) as words,
            query as plain
    ),
    exact as materialized (
        (
            select 'speech' as matched, f.fact_id, f.video_id, f.start_s, f.end_s,
                f.text as snippet, ts_rank_cd(f.search, a.words, 32) as rank
            from core.utterances f, asked a
            where f.search @@ a.words
            order by rank desc, f.fact_id
            limit greatest(max_results, 0)
        )
        union all
        (
            select 'text' as matched, f.fact_id, f.video_id, f.start_s, f.end_s,
                f.text as snippet, ts_rank_cd(f.search, a.words, 32) as rank
            from core.texts f, asked a
            where f.search @@ a.words
            order by rank desc, f.fact_id
            limit greatest(max_results, 0)
        )
        union all
        (
            select 'label' as matched, f.fact_id, f.video_id, f.start_s, f.end_s,
                f.label as snippet, ts_rank_cd(f.search, a.words, 32) as rank
            from core.labels f, asked a
            where f.search @@ a.words
            order by rank desc, f.fact_id
            limit greatest(max_results, 0)
        )
        union all
        (
            select 'event' as matched, f.fact_id, f.video_id, f.start_s, f.end_s,
                f.description as snippet, ts_rank_cd(f.search, a.words, 32) as rank
            from core.events f, asked a
            where f.search @@ a.words
            order by rank desc, f.fact_id
            limit greatest(max_results, 0)
        )
        union all
        (
            select 'answer' as matched, f.fact_id, f.video_id, f.start_s, f.end_s,
                f.claim as snippet, ts_rank_cd(f.search, a.words, 32) as rank
            from core.answers f, asked a
            where f.search @@ a.words and f.verdict <> 'rejected'
            order by rank desc, f.fact_id
            limit greatest(max_results, 0)
        )
    ),
    -- Near misses are looked for only where whole words found too little: they cost more.
    missing as materialized (
        select count(*) < max_results as wanted from exact
    ),
    near as (
        (
            select 'speech', f.fact_id, f.video_id, f.start_s, f.end_s,
                f.text, 0.5 * word_similarity(a.plain, f.text) as score
            from core.utterances f, asked a
            where (select wanted from missing)
                and a.plain <% f.text
                and not f.search @@ a.words
            order by score desc, f.fact_id
            limit greatest(max_results, 0)
        )
        union all
        (
            select 'text', f.fact_id, f.video_id, f.start_s, f.end_s,
                f.text, 0.5 * word_similarity(a.plain, f.text) as score
            from core.texts f, asked a
            where (select wanted from missing)
                and a.plain <% f.text
                and not f.search @@ a.words
            order by score desc, f.fact_id
            limit greatest(max_results, 0)
        )
        union all
        (
            select 'label', f.fact_id, f.video_id, f.start_s, f.end_s,
                f.label, 0.5 * word_similarity(a.plain, f.label) as score
            from core.labels f, asked a
            where (select wanted from missing)
                and a.plain <% f.label
                and not f.search @@ a.words
            order by score desc, f.fact_id
            limit greatest(max_results, 0)
        )
        union all
        (
            select 'event', f.fact_id, f.video_id, f.start_s, f.end_s,
                f.description, 0.5 * word_similarity(a.plain, f.description) as score
            from core.events f, asked a
            where (select wanted from missing)
                and a.plain <% f.description
                and not f.search @@ a.words
            order by score desc, f.fact_id
            limit greatest(max_results, 0)
        )
        union all
        (
            select 'answer', f.fact_id, f.video_id, f.start_s, f.end_s,
                f.claim, 0.5 * word_similarity(a.plain, f.claim) as score
            from core.answers f, asked a
            where (select wanted from missing)
                and a.plain <% f.claim
                and not f.search @@ a.words and f.verdict <> 'rejected'
            order by score desc, f.fact_id
            limit greatest(max_results, 0)
        )
    ),
    scored as (
        -- Whole words: 0.75 to 1 in what was seen or heard, 0.5 to 0.75 in what was made of it (an
        -- answer that quotes a sentence must not stand above the sentence). Below 0.5: near misses.
        select matched, fact_id, video_id, start_s, end_s, snippet,
            (
                case when matched in ('event', 'answer') then 0.5 else 0.75 end
                + 0.125 * rank + 0.125 * word_similarity(query, snippet)
            )::double precision as score
        from exact
        union all
        select near.* from near
    )
    select s.score, s.matched, s.fact_id, s.video_id, v.bucket, v.key, s.start_s, s.end_s,
        left(s.snippet, 400)
    from scored s
    join core.videos v using (video_id)
    order by s.score desc, v.bucket, v.key, s.start_s, s.fact_id
    limit greatest(max_results, 0)
$$;

-- Sampled pictures most like a given vector of one model. Vectors of different models cannot be
-- compared: the model revision must be named and known, and the width must fit.
create or replace function reel.similar(
    query vector, revision text, max_results integer default 20
)
returns table (
    similarity double precision,
    fact_id uuid,
    video_id uuid,
    bucket text,
    key text,
    start_s double precision,
    sample_name text
)
language plpgsql
stable
security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    width integer := vector_dims(query);
    kind text := case when vector_dims(query) <= 2000 then 'vector' else 'halfvec' end;
begin
    if not exists (
        select from core.embeddings e where e.model_revision = revision and e.dimension = width
    ) then
        raise exception 'no pictures embedded by model revision % with % dimensions',
            revision, width using errcode = 'invalid_parameter_value';
    end if;
    -- An index scan alone ends after forty rows; this lets it go on until the limit is reached.
    -- Not a SET clause of the function: creating that needs more rights than an owner has.
    perform set_config('hnsw.iterative_scan', 'strict_order', true);
    -- The cast and the condition are spelt as in the model's partial index, so that it is used.
    return query execute format(
        $q$
        with nearest as materialized (
            select e.fact_id, e.video_id, e.start_s, e.sample_name,
                (e.vector::%1$s(%2$s)) <=> ($1::%1$s(%2$s)) as distance
            from core.embeddings e
            where e.model_revision = %3$L and e.dimension = %2$s
            order by (e.vector::%1$s(%2$s)) <=> ($1::%1$s(%2$s))
            limit $2
        )
        select 1 - n.distance, n.fact_id, n.video_id, v.bucket, v.key, n.start_s, n.sample_name
        from nearest n
        join core.videos v using (video_id)
        order by n.distance, n.fact_id
        $q$, kind, width, revision)
        using query, greatest(max_results, 0);
end
$$;

-- Sampled pictures most like the given one, in the space of the model that embedded it.
create or replace function reel.similar(embedding uuid, max_results integer default 20)
returns table (
    similarity double precision,
    fact_id uuid,
    video_id uuid,
    bucket text,
    key text,
    start_s double precision,
    sample_name text
)
language sql
stable
security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select s.*
    from core.embeddings e
    cross join lateral reel.similar(e.vector, e.model_revision, max_results + 1) s
    where e.fact_id = embedding and s.fact_id <> embedding
    order by s.similarity desc, s.fact_id
    limit greatest(max_results, 0)
$$;
