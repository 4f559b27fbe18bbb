"""What the stack of one home directory consists of: addresses, secrets, pools."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from deploy.local.postgres import (
    OWNER_ROLE,
    PREFECT_DATABASE,
    PREFECT_ROLE,
    READER_ROLE,
    database_url,
)
from deploy.local.prefect_server import Pool, pools_of
from deploy.local.processes import alive, choose_port
from deploy.local.records import (
    SecretsFile,
    load_secrets,
    load_stack,
    new_secrets,
    save_secrets,
)
from deploy.local.seaweed import ADMIN_GRPC_OFFSET
from deploy.local.seaweed import PORTS as OBJECT_PORTS
from engines.errors import UsageError
from tasks.settings import Settings

PORTS_OF = {
    "postgres": ("postgres",),
    "objects": OBJECT_PORTS,
    "prefect": ("prefect",),
    "receiver": ("receiver",),
}
SERVER_OF = {"database": "postgres", "objects": "objects", "prefect": "prefect"}


@dataclass(frozen=True)
class Plan:
    """Everything that starting and examining need to know; nothing of it is a live object."""

    home: Path
    settings: Settings
    secrets: SecretsFile
    external: frozenset[str]
    """Which of database, objects, prefect somebody else runs."""
    pools: tuple[Pool, ...]

    @property
    def log_dir(self) -> Path:
        """One file per service."""
        return self.home / "logs"

    @property
    def database_url(self) -> str:
        """For the owner of the schemas."""
        if "database" in self.external and self.settings.database_url is not None:
            return self.settings.database_url.get_secret_value()
        return database_url(self.port("postgres"), OWNER_ROLE, self.secrets.owner_password)

    @property
    def reader_url(self) -> str | None:
        """For the reader role; of an external database only when the settings name it."""
        if "database" in self.external:
            given = self.settings.reader_url
            return given.get_secret_value() if given else None
        return database_url(self.port("postgres"), READER_ROLE, self.secrets.reader_password)

    @property
    def prefect_database_url(self) -> str:
        """Of the embedded Postgres, for the embedded Prefect server.

        With an external database the server keeps its state in a file of its own.
        """
        if "database" in self.external:
            return f"sqlite+aiosqlite:///{self.home / 'prefect' / 'prefect.db'}"
        port, password = self.port("postgres"), self.secrets.prefect_password
        url = database_url(port, PREFECT_ROLE, password, PREFECT_DATABASE)
        return url.replace("postgresql://", "postgresql+asyncpg://", 1)

    @property
    def s3_endpoint(self) -> str:
        """http://host:port or https://host:port."""
        if "objects" in self.external and self.settings.s3_endpoint is not None:
            return self.settings.s3_endpoint
        return f"http://127.0.0.1:{self.port('s3')}"

    @property
    def s3_keys(self) -> tuple[str, str]:
        """Access key and secret key."""
        given = self.settings.s3_access_key, self.settings.s3_secret_key
        if "objects" in self.external and given[0] is not None and given[1] is not None:
            return given[0].get_secret_value(), given[1].get_secret_value()
        return self.secrets.s3_access_key, self.secrets.s3_secret_key

    @property
    def api_url(self) -> str:
        """Of the Prefect API."""
        if "prefect" in self.external and self.settings.prefect_api_url is not None:
            return self.settings.prefect_api_url
        return f"http://127.0.0.1:{self.port('prefect')}/api"

    @property
    def ui_url(self) -> str:
        """Of the Prefect UI."""
        if "prefect" in self.external and self.settings.prefect_ui_url is not None:
            return self.settings.prefect_ui_url
        return self.api_url.removesuffix("/api")

    @property
    def receiver_url(self) -> str:
        """Of the receiver of upload notifications."""
        return f"http://127.0.0.1:{self.port('receiver')}"

    @property
    def servers(self) -> tuple[str, ...]:
        """Names of the servers that the stack runs itself, in the order of their start."""
        return tuple(server for kind, server in SERVER_OF.items() if kind not in self.external)

    def port(self, name: str) -> int:
        """The chosen port; 0 when ``up`` has never run."""
        return self.secrets.ports.get(name, 0)

    def worker_name(self, pool: Pool) -> str:
        """Tells machines and checkouts apart in the Prefect UI."""
        return f"{socket.gethostname()}-{self.port('receiver')}-{pool.name}"

    def stored_settings(self) -> dict[str, str]:
        """What other processes read from ``stack.json``: only what this stack itself runs."""
        values = {"receiver_url": self.receiver_url, "receiver_token": self.secrets.receiver_token}
        if "database" not in self.external:
            values |= {"database_url": self.database_url, "reader_url": self.reader_url or ""}
        if "objects" not in self.external:
            access_key, secret_key = self.s3_keys
            values |= {
                "s3_endpoint": self.s3_endpoint,
                "s3_access_key": access_key,
                "s3_secret_key": secret_key,
            }
        if "prefect" not in self.external:
            values |= {"prefect_api_url": self.api_url, "prefect_ui_url": self.ui_url}
        return values

    def child_environment(self) -> dict[str, str]:
        """Settings that a caller gave and that are not in ``stack.json``, for the services."""
        given = self.settings
        plain = ("videos_bucket", "artifacts_bucket", "watched_prefix", "s3_region", "mine_after_s")
        values = {f"REELGRAPH_{name.upper()}": str(getattr(given, name)) for name in plain}
        if "database" in self.external:
            values["REELGRAPH_DATABASE_URL"] = self.database_url
        if "objects" in self.external:
            values["REELGRAPH_S3_ENDPOINT"] = self.s3_endpoint
            values["REELGRAPH_S3_ACCESS_KEY"], values["REELGRAPH_S3_SECRET_KEY"] = self.s3_keys
        return values


def make_plan(settings: Settings, home: Path) -> Plan:
    """Choose ports and make secrets where there are none; both are kept for the next start.

    Raises:
        UsageError: an external object store without keys.
        ServiceUnavailableError: no free port, or a damaged file.
    """
    secrets = load_secrets(home)
    if secrets is None:
        secrets = new_secrets()
    running = load_stack(home).services
    ports: dict[str, int] = {}
    for service, names in PORTS_OF.items():
        for name in names:
            known = secrets.ports.get(name)
            if known is None or not alive(running.get(service)):
                taken = {*ports.values(), *secrets.ports.values()} - {known}
                above = ADMIN_GRPC_OFFSET if name == "admin" else 0
                known = choose_port(known, taken, above=above)
            ports[name] = known
    secrets = secrets.model_copy(update={"ports": ports})
    save_secrets(home, secrets)
    return _plan(settings, home, secrets)


def read_plan(settings: Settings, home: Path) -> Plan:
    """The plan as it was made last; changes nothing and has no ports before the first ``up``."""
    return _plan(settings, home, load_secrets(home) or new_secrets())


def _plan(settings: Settings, home: Path, secrets: SecretsFile) -> Plan:
    external = frozenset(_external(settings, secrets))
    if "objects" in external and (settings.s3_access_key is None or settings.s3_secret_key is None):
        msg = (
            f"REELGRAPH_S3_ENDPOINT names {settings.s3_endpoint}: set REELGRAPH_S3_ACCESS_KEY "
            f"and REELGRAPH_S3_SECRET_KEY too"
        )
        raise UsageError(msg)
    pools = pools_of(
        settings,
        memory_bytes=psutil.virtual_memory().total,
        cores=os.cpu_count() or 1,
    )
    return Plan(home=home, settings=settings, secrets=secrets, external=external, pools=pools)


def _external(settings: Settings, secrets: SecretsFile) -> list[str]:
    """Which servers the settings name that are not this stack's own.

    Settings read while the stack was up name its own servers; their secrets tell them apart.
    """
    found = []
    if settings.database_url is not None:
        password = urlsplit(settings.database_url.get_secret_value()).password
        if password != secrets.owner_password:
            found.append("database")
    if settings.s3_endpoint is not None:
        key = settings.s3_access_key
        if key is None or key.get_secret_value() != secrets.s3_access_key:
            found.append("objects")
    if settings.prefect_api_url is not None:
        own = f"http://127.0.0.1:{secrets.ports.get('prefect', 0)}/api"
        if settings.prefect_api_url.rstrip("/") != own:
            found.append("prefect")
    return found
