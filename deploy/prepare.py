"""Prepare named servers for the product, once: ``python -m deploy.prepare``.

For containers and clusters, where somebody else starts the processes. Waits for the servers, then
migrates the database, creates buckets and work pools, and registers the deployments. Running it
again changes nothing.
"""

import logging
import time
from collections.abc import Callable

from deploy.local.health import object_client, probes
from deploy.local.plan import SERVER_OF, Plan, read_plan
from deploy.local.prefect_server import ensure_pools
from deploy.local.seaweed import ensure_buckets
from engines.errors import ServiceUnavailableError, UsageError
from tasks.settings import get_settings

WAIT_S = 180.0
TRY_EVERY_S = 2.0

logger = logging.getLogger("reelgraph.prepare")


def prepare(plan: Plan) -> None:
    """Bring the plan's servers to what this version of the code needs.

    Args:
        plan: names all three servers.

    Raises:
        UsageError: the settings leave one of them unnamed.
        ServiceUnavailableError: one does not answer in time.
    """
    from flows.deployments import register
    from tasks.store.migrate import upgrade

    if plan.servers:
        msg = (
            "name every server: REELGRAPH_DATABASE_URL, REELGRAPH_S3_ENDPOINT with its keys, "
            f"PREFECT_API_URL; missing: {', '.join(plan.servers)}"
        )
        raise UsageError(msg)
    asked = probes(plan)
    for name in SERVER_OF.values():
        _wait(name, asked[name])
    upgrade(plan.database_url)
    logger.info("schema up to date")
    settings = plan.settings
    ensure_buckets(object_client(plan), (settings.videos_bucket, settings.artifacts_bucket))
    # Workers run on other machines with interpreters of their own: they fill in the template.
    ensure_pools(plan.api_url, plan.pools, None)
    register(plan.api_url)
    logger.info("deployments registered")


def main() -> None:
    """Prepare what the environment names."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    settings = get_settings()
    prepare(read_plan(settings, settings.home))


def _wait(name: str, probe: Callable[[], str | None]) -> None:
    deadline = time.monotonic() + WAIT_S
    while (problem := probe()) is not None:
        if time.monotonic() > deadline:
            msg = f"{name} does not work after {WAIT_S:g} s: {problem}"
            raise ServiceUnavailableError(msg)
        logger.info("waiting for %s: %s", name, problem)
        time.sleep(TRY_EVERY_S)


if __name__ == "__main__":
    main()
