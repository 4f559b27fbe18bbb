"""The only reader of the environment.

Order: environment variables, then ``stack.json`` in the home directory (written by the embedded
stack, mode 0600), then the defaults here. Nothing is built at import.
"""

import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

CHECKOUT = Path(__file__).resolve().parent.parent
STACK_FILE = "stack.json"


def default_home() -> Path:
    """Where the embedded stack keeps its data.

    Beside the code for an ordinary user. As root it lies under /var/lib, since Postgres then
    runs as an unprivileged user that could not reach a directory below /root.
    """
    if os.geteuid() != 0:
        return CHECKOUT / ".reelgraph"
    name = hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]
    return Path("/var/lib/reelgraph") / name


class StackFileSource(PydanticBaseSettingsSource):
    """Reads what ``reelgraph up`` wrote: addresses and secrets of the embedded services."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """Not used: values come as a whole from ``__call__``."""
        del field
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Settings of the running stack; empty when there is none."""
        home = self.current_state.get("home")
        path = (Path(home) if home else default_home()) / STACK_FILE
        try:
            stored = json.loads(path.read_text())
        except FileNotFoundError:
            return {}
        known = self.settings_cls.model_fields
        return {k: v for k, v in stored["settings"].items() if k in known}


class Settings(BaseSettings):
    """Everything that a deployment may set; secrets never print."""

    model_config = SettingsConfigDict(
        env_prefix="REELGRAPH_", extra="ignore", populate_by_name=True
    )

    home: Path = Field(default_factory=default_home)

    database_url: SecretStr | None = None
    """postgresql://owner:...@host:port/db; owner of the schemas."""
    reader_url: SecretStr | None = None
    """postgresql://reel_reader:...@host:port/db; may read the schema ``reel`` and nothing else."""

    s3_endpoint: str | None = None
    """http://host:port or https://host:port."""
    s3_access_key: SecretStr | None = None
    s3_secret_key: SecretStr | None = None
    s3_region: str = "us-east-1"
    videos_bucket: str = "videos"
    artifacts_bucket: str = "reelgraph-artifacts"
    watched_prefix: str = ""
    """Only keys of the videos bucket below this prefix start a run by themselves."""
    mine_after_s: float = 60.0
    """So long after a video's timeline was published, each corpus that was mined before and holds
    it is mined again; videos that come meanwhile share that run. Below 0: never by itself."""

    prefect_api_url: str | None = Field(
        default=None, validation_alias=AliasChoices("prefect_api_url", "PREFECT_API_URL")
    )
    prefect_ui_url: str | None = None
    receiver_url: str | None = None
    receiver_token: SecretStr | None = None

    models_dir: Path | None = Field(
        default=None, validation_alias=AliasChoices("models_dir", "REELGRAPH_MODELS")
    )
    """Directories of the user's own models (CLIP, Whisper ...)."""
    llm_base_url: str | None = None
    """An OpenAI-compatible server; None means the extractive engine."""
    llm_api_key: SecretStr | None = None
    llm_model: str | None = None

    lease_s: float = 20.0
    """A lease not renewed for so long is free to take: its holder is dead."""
    stage_timeout_s: float = 1800.0
    engine_threads: int = Field(default_factory=lambda: os.cpu_count() or 1)
    max_object_bytes: int = 200 * 2**30
    scratch_max_bytes: int = 20 * 2**30

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Constructor, environment, then the embedded stack."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, StackFileSource(settings_cls)

    @property
    def scratch_dir(self) -> Path:
        """Content-addressed local copies; safe to delete when nothing runs."""
        return self.home / "scratch"


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Settings of this process; ``get_settings.cache_clear()`` reads them again."""
    return Settings()


def process_environment(**extra: str) -> dict[str, str]:
    """The environment to hand to a child process: this one's, with ``extra`` on top."""
    return {**os.environ, **extra}
