"""What is known about the stack: what a caller is told, and what is kept on disk.

``stack.json`` tells every other process where the services are and which processes they are;
``secrets.json`` keeps passwords and ports for the next start. Both are mode 0600 and written
to a new file that then takes the old one's place, so a reader never sees half of one.
"""

import json
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engines.errors import ServiceUnavailableError
from tasks.settings import STACK_FILE

SECRETS_FILE = "secrets.json"

ModelT = TypeVar("ModelT", bound=BaseModel)

State = Literal["running", "stopped", "external", "not served"]
Report = Callable[[str], None]


class ServiceStatus(BaseModel):
    """One service as a caller sees it."""

    model_config = ConfigDict(frozen=True)

    name: str
    state: State
    healthy: bool
    url: str | None = None
    pid: int | None = None
    detail: str = ""
    """Why it is not healthy or not served; empty when there is nothing to say."""


class StackStatus(BaseModel):
    """The stack as a whole; addresses are None while the service behind them is down."""

    model_config = ConfigDict(frozen=True)

    healthy: bool
    """Everything that this machine is meant to serve works."""
    services: tuple[ServiceStatus, ...]
    ui_url: str | None = None
    api_url: str | None = None
    s3_endpoint: str | None = None
    dsn: str | None = None
    """For the reader role; has its password."""
    receiver_url: str | None = None
    data_dir: Path
    log_dir: Path


class ServiceRecord(BaseModel):
    """A process that ``up`` started."""

    model_config = ConfigDict(frozen=True)

    pid: int
    born: str
    """Boot id and start tick of the process: the same pid with another value is a stranger."""
    fingerprint: str
    """SHA-256 of command, addresses and configuration; another value means restart."""


class StackFile(BaseModel):
    """The content of ``stack.json``."""

    settings: dict[str, str] = Field(default_factory=dict)
    """Values for the fields of ``tasks.settings.Settings``; empty while the stack is down."""
    services: dict[str, ServiceRecord] = Field(default_factory=dict)
    registered: str | None = None
    """Fingerprint of the deployments that the Prefect server knows."""


class SecretsFile(BaseModel):
    """The content of ``secrets.json``: made once, kept as long as the data they open."""

    postgres_password: str
    owner_password: str
    reader_password: str
    prefect_password: str
    s3_access_key: str
    s3_secret_key: str
    receiver_token: str
    ports: dict[str, int] = Field(default_factory=dict)


def new_secrets() -> SecretsFile:
    """Random values; hexadecimal, so that they need no quoting in URLs, SQL or TOML."""
    return SecretsFile(
        postgres_password=secrets.token_hex(24),
        owner_password=secrets.token_hex(24),
        reader_password=secrets.token_hex(24),
        prefect_password=secrets.token_hex(24),
        s3_access_key=secrets.token_hex(10).upper(),
        s3_secret_key=secrets.token_hex(24),
        receiver_token=secrets.token_hex(24),
    )


def load_stack(home: Path) -> StackFile:
    """Read ``stack.json``; an empty record where there is none."""
    return _load(home / STACK_FILE, StackFile) or StackFile()


def save_stack(home: Path, stack: StackFile) -> None:
    """Replace ``stack.json``."""
    write_private(home / STACK_FILE, stack.model_dump_json(indent=1))


def load_secrets(home: Path) -> SecretsFile | None:
    """Read ``secrets.json``; None where there is none."""
    return _load(home / SECRETS_FILE, SecretsFile)


def save_secrets(home: Path, values: SecretsFile) -> None:
    """Replace ``secrets.json``."""
    write_private(home / SECRETS_FILE, values.model_dump_json(indent=1))


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; mode 0600 from its first moment."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _load(path: Path, model: type[ModelT]) -> ModelT | None:
    try:
        return model.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, ValidationError) as error:
        msg = f"{path} is damaged ({type(error).__name__}): restore it or remove it"
        raise ServiceUnavailableError(msg) from error
