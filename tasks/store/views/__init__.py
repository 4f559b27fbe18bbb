"""The public schema ``reel``: its views and functions, and bringing a database up to them.

The ``*.sql`` files beside this module are the one current text of the contract. They are applied
in the order of their names, after the tables have reached their head revision, and only when
their text differs from what the schema's comment says was applied last. They use ``create or
replace``: a view may gain columns at its end. A revision that must change or drop a column which
a view reads drops that view itself; the files then make it anew.
"""

import hashlib
from importlib.resources import files

from sqlalchemy import Connection, text

from engines.errors import EngineError

_APPLIED = "select obj_description(to_regnamespace('reel'), 'pg_namespace')"


def view_files() -> list[tuple[str, str]]:
    """Name and text of every SQL file, in the order in which they are applied."""
    folder = files("tasks.store.views")
    found = [
        (entry.name, entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    if not found:
        msg = "the SQL files of the schema reel are not installed"
        raise EngineError(msg)
    return sorted(found)


def apply_views(connection: Connection) -> bool:
    """Bring the schema ``reel`` to the files' text; whether there was anything to do."""
    scripts = view_files()
    digest = hashlib.sha256("".join(body for _, body in scripts).encode()).hexdigest()
    if connection.execute(text(_APPLIED)).scalar_one_or_none() == digest:
        return False
    for _, body in scripts:
        # Without parameters the driver leaves percent signs alone and takes several statements.
        connection.exec_driver_sql(body, execution_options={"no_parameters": True})
    # COMMENT takes no parameters; the digest is hex.
    connection.exec_driver_sql(f"comment on schema reel is '{digest}'")
    return True
