"""What is ours, what is external, and which addresses stay the same."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from deploy.local.plan import make_plan, read_plan
from deploy.local.prefect_server import job_template, pools_of
from deploy.local.records import load_secrets
from engines.errors import UsageError
from tasks.settings import Settings

GIB = 2**30


@pytest.fixture(autouse=True)
def _no_servers_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "S3_ENDPOINT", "S3_ACCESS_KEY", "S3_SECRET_KEY", "LLM_BASE_URL"):
        monkeypatch.delenv(f"REELGRAPH_{name}", raising=False)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


def test_ports_and_secrets_are_kept(tmp_path: Path) -> None:
    first = make_plan(Settings(home=tmp_path), tmp_path)
    second = make_plan(Settings(home=tmp_path), tmp_path)
    assert first.secrets == second.secrets == load_secrets(tmp_path)
    assert first.stored_settings() == second.stored_settings()
    ports = list(first.secrets.ports.values())
    assert len(set(ports)) == len(ports) == 12


def test_two_homes_share_no_port_and_no_secret(tmp_path: Path) -> None:
    plans = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        plans.append(make_plan(Settings(home=tmp_path / name), tmp_path / name))
    one, two = (set(plan.stored_settings().values()) for plan in plans)
    assert not one & two


def test_reading_a_plan_changes_nothing(tmp_path: Path) -> None:
    plan = read_plan(Settings(home=tmp_path), tmp_path)
    assert plan.port("postgres") == 0
    assert not list(tmp_path.iterdir())


def test_without_settings_everything_is_ours(tmp_path: Path) -> None:
    plan = make_plan(Settings(home=tmp_path), tmp_path)
    assert plan.servers == ("postgres", "objects", "prefect")
    assert set(plan.stored_settings()) == {
        "database_url",
        "reader_url",
        "s3_endpoint",
        "s3_access_key",
        "s3_secret_key",
        "prefect_api_url",
        "prefect_ui_url",
        "receiver_url",
        "receiver_token",
    }
    assert set(plan.stored_settings()) <= set(Settings.model_fields)


def test_settings_of_the_running_stack_are_not_external(tmp_path: Path) -> None:
    plan = make_plan(Settings(home=tmp_path), tmp_path)
    settings = Settings(home=tmp_path, **plan.stored_settings())
    assert make_plan(settings, tmp_path).servers == ("postgres", "objects", "prefect")


def test_named_servers_are_used_and_not_stored(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        database_url=SecretStr("postgresql://me:pw@db.example/x"),
        s3_endpoint="https://minio.example",
        s3_access_key=SecretStr("key"),
        s3_secret_key=SecretStr("secret"),
        prefect_api_url="https://prefect.example/api",
    )
    plan = make_plan(settings, tmp_path)
    assert plan.servers == ()
    assert plan.database_url == "postgresql://me:pw@db.example/x"
    assert plan.s3_keys == ("key", "secret")
    assert plan.ui_url == "https://prefect.example"
    assert set(plan.stored_settings()) == {"receiver_url", "receiver_token"}
    assert plan.child_environment()["REELGRAPH_S3_SECRET_KEY"] == "secret"
    assert plan.reader_url is None


def test_a_named_store_needs_its_keys(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, s3_endpoint="https://minio.example")
    with pytest.raises(UsageError, match="REELGRAPH_S3_ACCESS_KEY"):
        make_plan(settings, tmp_path)


@pytest.mark.parametrize(
    ("memory_bytes", "cores", "flows"), [(24 * GIB, 2, 2), (4 * GIB, 8, 1), (2 * GIB, 2, 1)]
)
def test_flows_at_a_time_fit_the_machine(
    tmp_path: Path, memory_bytes: int, cores: int, flows: int
) -> None:
    pools = pools_of(Settings(home=tmp_path), memory_bytes=memory_bytes, cores=cores)
    assert [pool.name for pool in pools] == ["cpu", "gpu", "llm"]
    assert pools[0].concurrency_limit == flows
    assert pools[0].not_served is None
    assert pools[1].concurrency_limit == 1


def test_a_language_model_server_makes_its_pool_served(tmp_path: Path) -> None:
    without = pools_of(Settings(home=tmp_path), memory_bytes=GIB, cores=1)[2]
    assert without.not_served == "REELGRAPH_LLM_BASE_URL is not set"
    settings = Settings(home=tmp_path, llm_base_url="http://127.0.0.1:1/v1")
    assert pools_of(settings, memory_bytes=GIB, cores=1)[2].not_served is None


def test_a_pool_starts_runs_with_our_own_interpreter() -> None:
    command = job_template()["variables"]["properties"]["command"]["default"]
    assert command.endswith(" -m prefect.engine")
    assert Path(command.split()[0]).name.startswith("python")
