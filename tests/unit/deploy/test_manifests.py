"""The container and cluster files parse, and name modules, commands and settings that exist.

They cannot be run here; what can be checked without Docker and Kubernetes is checked.
"""

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local.prefect_server import pools_of
from tasks.settings import CHECKOUT, Settings

DEPLOY = CHECKOUT / "deploy"
MANIFESTS = sorted((DEPLOY / "k8s").glob("*.yaml"))
PRODUCT = ("reelgraph:cpu", "reelgraph:gpu")


def documents(path: Path) -> list[dict[str, Any]]:
    return [d for d in yaml.safe_load_all(path.read_text()) if d]


def pod_specs() -> dict[str, dict[str, Any]]:
    found = {}
    for path in MANIFESTS:
        for document in documents(path):
            if document["kind"] in {"Deployment", "Job"}:
                found[document["metadata"]["name"]] = document["spec"]["template"]["spec"]
    return found


def compose() -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = documents(DEPLOY / "compose.yaml")[0]["services"]
    return services


def commands() -> list[list[str]]:
    """Commands that our own images run."""
    found = [
        container.get("command", [])
        for spec in pod_specs().values()
        for container in spec["containers"]
        if container["image"] in PRODUCT
    ]
    found += [
        service["command"].split()
        for service in compose().values()
        if service.get("image") in PRODUCT and "command" in service
    ]
    for path in (DEPLOY / "docker").iterdir():
        line = re.search(r"^CMD (\[.*\])$", path.read_text(), re.MULTILINE)
        assert line is not None, path
        found.append(yaml.safe_load(line[1]))
    return found


def settings_named(environment: dict[str, str]) -> set[str]:
    return {n.removeprefix("REELGRAPH_").lower() for n in environment if n.startswith("REELGRAPH_")}


def test_commands_name_modules_and_pools_that_exist(tmp_path: Path) -> None:
    pools = {p.name for p in pools_of(Settings(home=tmp_path), memory_bytes=2**32, cores=2)}
    assert len(commands()) >= 8
    for command in commands():
        if command[0] == "python":
            assert command[1] == "-m"
            assert importlib.util.find_spec(command[2]) is not None
            continue
        assert command[:3] == ["prefect", "worker", "start"]
        assert command[command.index("--pool") + 1] in pools


def test_environment_names_settings_that_exist() -> None:
    for service in compose().values():
        if service.get("image") in PRODUCT:
            assert settings_named(service["environment"]) <= set(Settings.model_fields)
    literals = documents(DEPLOY / "k8s" / "kustomization.yaml")[0]["configMapGenerator"][0]
    named = dict(literal.split("=", 1) for literal in literals["literals"])
    assert settings_named(named) <= set(Settings.model_fields)
    assert named["PREFECT_API_URL"] == "http://prefect:4200/api"


def test_the_kustomization_lists_every_manifest() -> None:
    listed = documents(DEPLOY / "k8s" / "kustomization.yaml")[0]["resources"]
    assert sorted(listed) == [p.name for p in MANIFESTS if p.name != "kustomization.yaml"]


def test_prefect_is_the_version_that_the_product_uses() -> None:
    expected = f"prefecthq/prefect:{importlib.metadata.version('prefect')}-python3.11"
    assert compose()["prefect"]["image"] == expected
    assert pod_specs()["prefect"]["containers"][0]["image"] == expected


@pytest.mark.parametrize("name", ["worker-cpu", "worker-gpu"])
def test_workers_state_memory_and_shared_memory(name: str) -> None:
    service = compose()[name]
    assert service["shm_size"]
    assert service["mem_limit"]
    spec = pod_specs()[name]
    resources = spec["containers"][0]["resources"]
    assert {"cpu", "memory"} <= set(resources["requests"])
    assert "memory" in resources["limits"]
    mounts = {m["mountPath"]: m["name"] for m in spec["containers"][0]["volumeMounts"]}
    shared = next(v for v in spec["volumes"] if v["name"] == mounts["/dev/shm"])
    assert shared["emptyDir"]["medium"] == "Memory"


def test_only_the_gpu_worker_asks_for_a_gpu() -> None:
    for name, spec in pod_specs().items():
        limits = spec["containers"][0]["resources"]["limits"]
        assert ("nvidia.com/gpu" in limits) == (name == "worker-gpu")
    devices = compose()["worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices[0]["capabilities"] == ["gpu"]
    assert compose()["worker-gpu"]["profiles"] == ["gpu"]


def test_pods_run_without_root_and_within_limits() -> None:
    for name, spec in pod_specs().items():
        assert spec["securityContext"]["runAsNonRoot"], name
        assert not spec["enableServiceLinks"], name
        for container in spec["containers"]:
            assert container["resources"]["limits"]["memory"], name
            assert container["securityContext"]["allowPrivilegeEscalation"] is False, name


def test_passwords_are_never_written_down() -> None:
    secret = re.compile(r"^\s*\w*(PASSWORD|SECRET_KEY|ACCESS_KEY|TOKEN)\w*: (?P<value>.*)$")
    found = [
        match["value"]
        for path in (DEPLOY / "compose.yaml", *MANIFESTS)
        for line in path.read_text().splitlines()
        if (match := secret.match(line))
    ]
    assert len(found) >= 5
    assert all(re.fullmatch(r"\$\{\w+:\?\}", value) for value in found)


def test_the_announcement_goes_to_the_receivers_path() -> None:
    environment = compose()["minio"]["environment"]
    assert environment["MINIO_NOTIFY_WEBHOOK_ENDPOINT_REELGRAPH"].endswith("/notify/minio")
    assert "arn:minio:sqs::REELGRAPH:webhook" in " ".join(compose()["announce"]["command"])
