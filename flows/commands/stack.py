"""up, down, status: the embedded stack."""

from deploy.local import StackStatus
from deploy.local import down as stop_stack
from deploy.local import status as stack_status
from deploy.local import up as start_stack
from engines.errors import ServiceUnavailableError
from flows.commands.output import dump, say, table, tell
from tasks.settings import get_settings


def up(*, as_json: bool) -> None:
    """Start what is not running.

    Raises:
        ServiceUnavailableError: a service did not come up.
    """
    _print(start_stack(get_settings(), tell), as_json=as_json)


def down(*, as_json: bool) -> None:
    """Stop what we started."""
    found = stop_stack(get_settings(), tell)
    if as_json:
        dump(found)
    else:
        say("stopped; data stays in " + str(found.data_dir))


def status(*, as_json: bool) -> None:
    """Print the state of every service.

    Raises:
        ServiceUnavailableError: some service is not healthy (after the state is printed).
    """
    found = stack_status(get_settings())
    _print(found, as_json=as_json)
    if not found.healthy:
        broken = [s.name for s in found.services if not s.healthy and s.state != "not served"]
        msg = f"not healthy: {', '.join(broken) or 'the stack is down'}; run `reelgraph up`"
        raise ServiceUnavailableError(msg)


def _print(found: StackStatus, *, as_json: bool) -> None:
    if as_json:
        dump(found)
        return
    table(
        ("service", "state", "address", "note"),
        [(s.name, s.state, s.url or "", s.detail) for s in found.services],
    )
    say()
    for name, value in (
        ("Prefect UI", found.ui_url),
        ("object store", found.s3_endpoint),
        ("read by SQL", "reelgraph dsn | xargs psql" if found.dsn else None),
        ("data", str(found.data_dir)),
        ("logs", str(found.log_dir)),
    ):
        if value:
            say(f"{name + ':':14}{value}")
