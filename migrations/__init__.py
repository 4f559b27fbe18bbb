"""Alembic migrations of the schema ``core``; run through ``tasks.store.migrate``."""
