"""compose.yaml and the systemd units are accepted by their programs, and confine and configure each service."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared import settings
from shared.network import NETWORKS
from tests import programs
from tests.chain.harness import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
UNITS = ROOT / "deploy" / "systemd"
PROFILES = ("mainnet", "preview", "preprod", "monitoring", "mithril")


@programs.needs("docker-compose")
def test_compose_accepts_its_file_with_every_profile() -> None:
    profiles = [word for profile in PROFILES for word in ("--profile", profile)]
    done = subprocess.run(["docker-compose", *profiles, "config"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) == set(COMPOSE["services"])


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_has_what_its_services_need(profile: str) -> None:
    services = COMPOSE["services"]
    enabled = {name for name, service in services.items() if profile in service.get("profiles", [profile])}
    assert {"api", "worker", "postgres", "valkey"} < enabled
    for name in enabled:
        assert set(services[name].get("depends_on", ())) <= enabled, name
        assert {place.split(":")[0] for place in services[name].get("volumes", ()) if place[0] not in "./"} <= set(
            COMPOSE["volumes"]
        ), name


def test_every_service_is_pinned_confined_and_watched() -> None:
    for name, service in COMPOSE["services"].items():
        assert re.search(r":(\$\{\w+:-)?v?\d+(\.\d+)+", service["image"]), name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["logging"]["options"]["max-size"], name
        once = service["restart"] == "no"
        assert once or "mem_limit" in service, name
        assert once or name == "api" or "healthcheck" in service, name
        secret = [
            key for key in service.get("environment", {}) if re.search("(PASSWORD|_KEY|(DATABASE|REDIS)_URL)$", key)
        ]
        assert secret in ([], ["GENESIS_VERIFICATION_KEY"]), name


def test_compose_passes_every_setting_on() -> None:
    of_the_image = {"DATA_DIR", "LOG_FORMAT", "API_HOST", "API_PORT"}  # or in the command
    of_replicas = {"READ_DATABASE_URL", "REPLICA_LAG_S"}  # which this file does not have
    named = {name.removesuffix("_FILE") for name in COMPOSE["services"]["api"]["environment"]}
    of_others = {"worker": {"POOL_METADATA", "POOL_METADATA_DELISTED"}}
    of_others |= {f"indexer-{network.name}": {"SPLIT_BLOCKS"} for network in NETWORKS}
    every = set(settings.effective(settings.read({}))) - of_the_image - of_replicas
    assert named == every - set[str]().union(*of_others.values())
    for name, expected in of_others.items():
        assert expected <= COMPOSE["services"][name]["environment"].keys(), name


@programs.needs("systemd-analyze")
@pytest.mark.parametrize("unit", ["ledgerline-indexer@.service", "ledgerline-api.service", "ledgerline-worker.service"])
def test_systemd_accepts_each_unit(unit: str, tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    text = (UNITS / unit).read_text().replace("/opt/ledgerline/.venv/bin", str(folder))
    path = tmp_path / unit.replace("@", "@preview")
    path.write_text(text.replace("WorkingDirectory=/opt/ledgerline", f"WorkingDirectory={ROOT}"))
    for check in (["verify", "--man=no"], ["security", "--offline=yes", "--threshold=20"]):
        done = subprocess.run(["systemd-analyze", *check, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "verify" not in check or unit.split("@")[0] not in done.stderr, done.stderr
