"""The embedded object store: SeaweedFS in its one-process form, speaking S3 on loopback."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import minio
import urllib3

from deploy.local.binaries import weed_program
from deploy.local.processes import Service, plain_environment
from deploy.local.records import SecretsFile, write_private

PORTS = (
    "s3",
    "s3_grpc",
    "master",
    "master_grpc",
    "volume",
    "volume_grpc",
    "filer",
    "filer_grpc",
    "admin",
)
"""Ports that ``weed mini`` opens; the gRPC ones lie 10 000 higher unless named."""
ADMIN_GRPC_OFFSET = 10_000
"""Its own maintenance worker looks for the admin server there, whatever port is named."""


@dataclass(frozen=True)
class Webhook:
    """Where the store announces what changes in one bucket."""

    endpoint: str
    token: str
    bucket: str


def seaweed_service(
    home: Path,
    ports: dict[str, int],
    secrets: SecretsFile,
    webhook: Webhook,
    ready: Callable[[], str | None],
) -> Service:
    """How to start the store; writes its notification file first.

    Args:
        home: the stack's directory; objects lie in ``s3`` below it.
        ports: one for each name in ``PORTS``.
        secrets: access key, secret key.
        webhook: receiver of notifications.
        ready: why it does not serve, None when it does.
    """
    directory = home / "s3"
    (directory / "data").mkdir(mode=0o700, parents=True, exist_ok=True)
    notification = _notification_toml(webhook)
    write_private(directory / "notification.toml", notification)
    endpoint = f"127.0.0.1:{ports['s3']}"
    return Service(
        name="objects",
        command=(
            str(weed_program()),
            "mini",
            *(f"-{name}={value}" for name, value in sorted(_options(directory, ports).items())),
        ),
        environment=plain_environment(
            home,
            "objects",
            AWS_ACCESS_KEY_ID=secrets.s3_access_key,
            AWS_SECRET_ACCESS_KEY=secrets.s3_secret_key,
            # Where the Go runtime begins to collect harder. It counts buffers that are never
            # touched: with 256 MiB an idle store collected for ever, a seventh of a core.
            GOMEMLIMIT="512MiB",
            GOGC="50",
        ),
        cwd=directory,
        ready=ready,
        configuration=notification,
        url=f"http://{endpoint}",
    )


def _options(directory: Path, ports: Mapping[str, int]) -> dict[str, object]:
    return {
        "dir": directory / "data",
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "webdav": "false",
        "admin.ui": "false",
        # It reports statistics to its makers unless told not to.
        "master.telemetry": "false",
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        # Sockets go to /tmp by default, where every user sees them; the path of one is short, so
        # these are relative to where the program starts.
        "s3.localSocket": "s3.sock",
        "filer.localSocket": "filer.sock",
        "s3.cacheCapacityMB": 16,
        "s3.readerCacheSizeMB": 64,
        "admin.port.grpc": ports["admin"] + ADMIN_GRPC_OFFSET,
        **{
            f"{name.removesuffix('_grpc')}.port{'.grpc' if name.endswith('_grpc') else ''}": port
            for name, port in ports.items()
        },
    }


def s3_client(
    endpoint: str,
    access_key: str,
    secret_key: str,
    *,
    secure: bool = False,
    region: str | None = None,
) -> minio.Minio:
    """A client that gives up at once instead of trying again for minutes."""
    pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=2, read=10))
    return minio.Minio(
        endpoint,
        access_key=access_key,
        secret_key=secret_key,
        secure=secure,
        region=region,
        http_client=pool,
    )


def s3_problem(client: minio.Minio) -> str | None:
    """Why the store does not serve signed requests; None when it does.

    Its own health page answers seconds before that.
    """
    try:
        client.list_buckets()
    except minio.error.S3Error as error:
        return f"{error.code}: {error.message}"
    except (urllib3.exceptions.HTTPError, minio.error.MinioException) as error:
        return str(error)
    return None


def ensure_buckets(client: minio.Minio, buckets: tuple[str, ...]) -> None:
    """Create the buckets that are missing."""
    for bucket in buckets:
        if not client.bucket_exists(bucket):
            client.make_bucket(bucket)


def _notification_toml(webhook: Webhook) -> str:
    return f"""[notification.webhook]
enabled = true
endpoint = "{webhook.endpoint}"
bearer_token = "{webhook.token}"
timeout_seconds = 10
max_retries = 10
backoff_seconds = 1
max_backoff_seconds = 10
workers = 4
buffer_size = 10000
event_types = ["create", "update", "delete", "rename"]
path_prefixes = ["/buckets/{webhook.bucket}/"]
"""
