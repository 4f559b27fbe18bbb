"""How Alembic reaches the database.

Only one migrator works at a time: a session advisory lock on a connection of its own makes others
wait, and a killed one frees it. Waiting for a table lock is bounded, so that a migration behind a
long query fails instead of blocking every reader that comes after it.

The views are no part of the revisions. They are contract, kept as one current text in
``tasks/store/views``, and are brought to that text after an upgrade to the head, so a fresh
database and one that went through every revision end with the same views.
"""

from typing import Any

from alembic import command, context
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from tasks.store import fact_tables
from tasks.store.session import create_engine
from tasks.store.tables import SCHEMA, metadata
from tasks.store.views import apply_views

MIGRATION_LOCK = 0x7265656C
"""Any number, as long as all migrators of one database use the same."""
LOCK_TIMEOUT = "10s"
WAIT_FOR_OTHERS = "300s"

assert fact_tables.shots.metadata is metadata, "the fact tables must be registered"


def include_name(name: str | None, type_: str, parent_names: Any) -> bool:
    """Look at our schema alone; vector indexes are made per model when one is first seen."""
    del parent_names
    if type_ == "schema":
        return name == SCHEMA
    return not (type_ == "index" and name is not None and name.startswith("embeddings_hnsw_"))


def migrate(connection: Connection) -> None:
    """Run what the command asked for in one transaction, then bring the views up to date."""
    connection.execute(text("select set_config('lock_timeout', :t, true)"), {"t": LOCK_TIMEOUT})
    # The version table lies in the schema, so the schema comes before any revision.
    connection.execute(text(f"create schema if not exists {SCHEMA}"))
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=include_name,
        compare_type=True,
        compare_server_default=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()
        if is_upgrade() and at_head():
            apply_views(connection)


def is_upgrade() -> bool:
    """Whether the command is ``upgrade``; looking at a database must not change it."""
    arguments = context.config.cmd_opts
    asked = None if arguments is None else arguments.cmd[0]
    return asked is command.upgrade or context.config.attributes.get("apply_views", False)


def at_head() -> bool:
    """Whether the revisions just run ended at the last one."""
    heads = ScriptDirectory.from_config(context.config).get_heads()
    return set(context.get_context().get_current_heads()) == set(heads)


def run(engine: Engine) -> None:
    """Hold the lock, then migrate on a second connection."""
    with engine.connect() as lock, lock.execution_options(isolation_level="AUTOCOMMIT"):
        lock.execute(text("select set_config('lock_timeout', :t, false)"), {"t": WAIT_FOR_OTHERS})
        lock.execute(text("select pg_advisory_lock(:n)"), {"n": MIGRATION_LOCK})
        try:
            with engine.begin() as connection:
                migrate(connection)
        finally:
            lock.execute(text("select pg_advisory_unlock(:n)"), {"n": MIGRATION_LOCK})


def main() -> None:
    """Take the engine from the caller, or the address from ``-x url=...``."""
    engine = context.config.attributes.get("engine")
    if engine is not None:
        run(engine)
        return
    engine = create_engine(context.get_x_argument(as_dictionary=True)["url"])
    try:
        run(engine)
    finally:
        engine.dispose()


main()
