"""What a process needs to touch the world, built once, on first use."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import Engine

from engines.errors import ServiceUnavailableError
from engines.runtime.child import ChildPool
from tasks.objects.artifacts import ArtifactStore
from tasks.objects.client import ObjectStore
from tasks.settings import Settings, get_settings
from tasks.store.session import create_engine

DECODE_MEMORY_BYTES = 6 << 30
"""Address space of the decoding child: a hostile file fails there, not in the worker."""


@dataclass(frozen=True)
class Resources:
    """Connections and child processes of this process; all lazy, all shared by its stages."""

    settings: Settings

    @cached_property
    def db(self) -> Engine:
        """Pool of connections to Postgres as the owner of the schemas."""
        return create_engine(self._secret("database_url"))

    @cached_property
    def objects(self) -> ObjectStore:
        """The object store."""
        if self.settings.s3_endpoint is None:
            raise _missing(self.settings, "s3_endpoint")
        return ObjectStore(
            self.settings.s3_endpoint,
            self._secret("s3_access_key"),
            self._secret("s3_secret_key"),
            region=self.settings.s3_region,
        )

    @cached_property
    def artifacts(self) -> ArtifactStore:
        """Artifacts in the store, with local copies in the scratch directory."""
        return ArtifactStore(
            self.objects,
            self.settings.artifacts_bucket,
            self.settings.scratch_dir,
            self.settings.scratch_max_bytes,
        )

    @cached_property
    def decode_child(self) -> ChildPool:
        """Where files from outside are opened: bounded in memory, free of model libraries."""
        return ChildPool(memory_bytes=DECODE_MEMORY_BYTES)

    @cached_property
    def model_child(self) -> ChildPool:
        """Where models run; they stay loaded between stages and videos."""
        return ChildPool()

    @property
    def api_url(self) -> str:
        """Address of Prefect's API."""
        if self.settings.prefect_api_url is None:
            raise _missing(self.settings, "prefect_api_url")
        return self.settings.prefect_api_url

    @property
    def cache_dir(self) -> Path:
        """Converted models and the like; safe to delete when nothing runs."""
        return self.settings.home / "cache"

    def _secret(self, field: str) -> str:
        value: SecretStr | None = getattr(self.settings, field)
        if value is None:
            raise _missing(self.settings, field)
        return value.get_secret_value()

    def close(self) -> None:
        """End the children and give the connections back."""
        for name in ("decode_child", "model_child"):
            child = self.__dict__.pop(name, None)
            if child is not None:
                child.close()
        engine = self.__dict__.pop("db", None)
        if engine is not None:
            engine.dispose()


@lru_cache(maxsize=1)
def get_resources() -> Resources:
    """The resources of this process."""
    return Resources(get_settings())


def _missing(settings: Settings, field: str) -> ServiceUnavailableError:
    """The error for a setting that is not there, naming the variable that would set it."""
    name = {"prefect_api_url": "PREFECT_API_URL"}.get(field, f"REELGRAPH_{field.upper()}")
    return ServiceUnavailableError(
        f"{name} is not set and no embedded stack is known in {settings.home}; run `reelgraph up`"
    )
