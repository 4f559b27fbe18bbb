"""What is kept on disk is private, whole, and read back by the settings."""

from pathlib import Path

import pytest

from deploy.local.records import (
    SECRETS_FILE,
    ServiceRecord,
    StackFile,
    load_secrets,
    load_stack,
    new_secrets,
    save_secrets,
    save_stack,
)
from engines.errors import ServiceUnavailableError
from tasks.settings import STACK_FILE, Settings


def test_files_are_private_and_come_back(tmp_path: Path) -> None:
    stack = StackFile(
        settings={"s3_endpoint": "http://127.0.0.1:1"},
        services={"objects": ServiceRecord(pid=1, born="b:2", fingerprint="f")},
    )
    secrets = new_secrets()
    save_stack(tmp_path, stack)
    save_secrets(tmp_path, secrets)
    assert load_stack(tmp_path) == stack
    assert load_secrets(tmp_path) == secrets
    for name in (STACK_FILE, SECRETS_FILE):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {STACK_FILE, SECRETS_FILE}


def test_nothing_there_is_no_error(tmp_path: Path) -> None:
    assert load_stack(tmp_path) == StackFile()
    assert load_secrets(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"services": {"a": {}}}'])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / STACK_FILE).write_text(content)
    with pytest.raises(ServiceUnavailableError, match=r"stack\.json is damaged"):
        load_stack(tmp_path)


def test_a_file_that_cannot_be_replaced_stays_whole(tmp_path: Path) -> None:
    save_stack(tmp_path, StackFile(settings={"s3_region": "x"}))
    unwritable = StackFile(settings={"s3_region": "\ud800"})
    with pytest.raises(ValueError, match="surrogates not allowed"):
        save_stack(tmp_path, unwritable)
    assert load_stack(tmp_path).settings == {"s3_region": "x"}
    assert [path.name for path in tmp_path.iterdir()] == [STACK_FILE]


def test_secrets_are_random_and_need_no_quoting() -> None:
    one, other = new_secrets(), new_secrets()
    values = [v for v in one.model_dump().values() if isinstance(v, str)]
    assert len(set(values)) == len(values)
    assert not set(values) & set(other.model_dump(exclude={"ports"}).values())
    assert all(value.isalnum() and len(value) >= 20 for value in values)


def test_settings_read_what_was_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PREFECT_API_URL", "REELGRAPH_S3_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    stored = {"s3_endpoint": "http://127.0.0.1:1", "prefect_api_url": "http://127.0.0.1:2/api"}
    save_stack(tmp_path, StackFile(settings=stored))
    settings = Settings(home=tmp_path)
    assert settings.s3_endpoint == stored["s3_endpoint"]
    assert settings.prefect_api_url == stored["prefect_api_url"]
