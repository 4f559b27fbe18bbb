-- The public schema and who may read it. Views and functions run with the rights of their owner,
-- so the reader needs nothing in the schema core and has nothing there.
create schema if not exists reel;

do $$
begin
    if not exists (select from pg_roles where rolname = 'reel_reader') then
        create role reel_reader nologin;
    end if;
exception
    -- Roles belong to the cluster: a migrator of another database may have been faster.
    when duplicate_object or unique_violation then null;
end
$$;

grant usage on schema reel to reel_reader;
revoke all on schema core from public;

do $$
begin
    -- Manners rather than a fence, since a session may change them; the fence is the grants.
    -- One snapshot per transaction: queries in one transaction never see two publications.
    execute format(
        'alter role reel_reader in database %I set default_transaction_read_only = on',
        current_database());
    execute format(
        'alter role reel_reader in database %I set default_transaction_isolation = %L',
        current_database(), 'repeatable read');
    execute format(
        'alter role reel_reader in database %I set statement_timeout = %L',
        current_database(), '60s');
    execute format(
        'alter role reel_reader in database %I set search_path = reel, public',
        current_database());
exception
    when insufficient_privilege then
        raise notice 'the defaults of reel_reader were left as they are: %', sqlerrm;
end
$$;

do $$
begin
    -- Everyone may make temporary tables unless told otherwise: the reader may write nothing.
    execute format('revoke temporary on database %I from public', current_database());
end
$$;

do $$
begin
    -- Nor large objects, which need no right on any schema. Only a superuser can say so.
    revoke execute on function
        lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea)
        from public;
exception
    when insufficient_privilege then
        raise notice 'large objects stay open to every role: %', sqlerrm;
end
$$;
