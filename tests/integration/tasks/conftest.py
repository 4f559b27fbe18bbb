"""A real Postgres and a real object store, without Prefect: what a stage needs to run."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pg_cluster import Cluster, free_port

from deploy.local.records import SecretsFile, new_secrets
from deploy.local.seaweed import (
    ADMIN_GRPC_OFFSET,
    PORTS,
    Webhook,
    ensure_buckets,
    s3_client,
    s3_problem,
    seaweed_service,
)
from tasks.resources import Resources, get_resources
from tasks.settings import get_settings


def _ports() -> dict[str, int]:
    ports = {name: free_port() for name in PORTS}
    while True:
        with socket.socket() as one, contextlib.suppress(OSError, OverflowError):
            one.bind(("127.0.0.1", ports["admin"] + ADMIN_GRPC_OFFSET))
            return ports
        ports["admin"] = free_port()


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, SecretsFile]]:
    """Address and secrets of a running SeaweedFS."""
    home = tmp_path_factory.mktemp("objects")
    secrets = new_secrets()
    nowhere = Webhook("http://127.0.0.1:1/", "none", "videos")
    service = seaweed_service(home, _ports(), secrets, nowhere, lambda: None)
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            service.command, env=service.environment, cwd=service.cwd, stdout=log, stderr=log
        )
    client = s3_client(
        service.url.removeprefix("http://"), secrets.s3_access_key, secrets.s3_secret_key
    )
    try:
        deadline = time.monotonic() + 60
        while (problem := s3_problem(client)) is not None:
            assert process.poll() is None, (home / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, problem
            time.sleep(0.2)
        ensure_buckets(client, ("videos", "reelgraph-artifacts"))
        yield service.url, secrets
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture
def world(
    object_store: tuple[str, SecretsFile],
    cluster: Cluster,
    template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Resources]:
    """The resources of this process, over an empty, migrated database."""
    url, secrets = object_store
    with cluster.database(template=template) as name:
        named = {
            "HOME": str(tmp_path),
            "DATABASE_URL": cluster.url(name),
            "S3_ENDPOINT": url,
            "S3_ACCESS_KEY": secrets.s3_access_key,
            "S3_SECRET_KEY": secrets.s3_secret_key,
        }
        for key, value in named.items():
            monkeypatch.setenv(f"REELGRAPH_{key}", value)
        get_settings.cache_clear()
        get_resources.cache_clear()
        yield get_resources()
        get_resources().close()
        get_settings.cache_clear()
        get_resources.cache_clear()
