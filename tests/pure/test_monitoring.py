"""Alerts, dashboards and the runbook name only existing things."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import programs

ROOT = Path(__file__).parents[2]
PROMETHEUS, RUNBOOK = ROOT / "deploy" / "prometheus", ROOT / "docs" / "runbook"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
RULES: list[dict[str, Any]] = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"][0]["rules"]


def test_every_alert_has_a_runbook_page_with_what_to_look_at_and_what_to_do() -> None:
    index = (RUNBOOK / "README.md").read_text()
    for rule in RULES:
        page = ROOT / rule["annotations"]["runbook"]
        text = page.read_text()
        assert text.startswith(f"# {rule['alert']}\n\n"), page
        assert re.search(r"\n## Look\n\n.*\n## Do\n\n", text, flags=re.DOTALL), page
        severity, summary = rule["labels"]["severity"], re.sub(r"\{\{.*?\}\}", "…", rule["annotations"]["summary"])
        assert f"| [{rule['alert']}]({page.name}) | {severity} | {summary} |\n" in index, page
        assert severity in ("critical", "warning")
    assert {page.name for page in RUNBOOK.glob("*.md")} - {"README.md"} <= set(re.findall(r"\(([\w-]+\.md)\)", index))


def test_every_link_of_the_runbook_leads_somewhere() -> None:
    for page in (*RUNBOOK.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{link} in {page.name}"


@pytest.mark.parametrize("path", [PROMETHEUS / "alerts.yml", *DASHBOARDS], ids=lambda path: path.name)
def test_every_metric_in_a_query_is_documented(path: Path) -> None:
    """docs/signals.md lists them all, in tables that share a prefix."""
    documented = re.findall(r"`([a-z_]+)(?:\{[a-z_,]+\})?`", (ROOT / "docs" / "signals.md").read_text())
    known = {f"{prefix}{name}" for name in documented for prefix in ("", "ledgerline_", "ledgerline_indexer_")}
    used = {re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"ledgerline_[a-z_]+", path.read_text())}
    assert used
    assert used <= known


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_every_panel_has_a_query_to_the_provisioned_source(path: Path) -> None:
    sources = yaml.safe_load((path.parents[1] / "provisioning" / "datasources" / "prometheus.yml").read_text())
    (uid,) = [source["uid"] for source in sources["datasources"]]
    panels = json.loads(path.read_text())["panels"]
    assert panels
    for panel in panels:
        assert panel["targets"], panel["title"]
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {uid}


def test_every_figure_of_an_alert_is_on_a_dashboard() -> None:
    alerts, *boards = (
        {re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"ledgerline_[a-z_]+", path.read_text())}
        for path in (PROMETHEUS / "alerts.yml", *DASHBOARDS)
    )
    assert alerts <= set().union(*boards)


@programs.needs("promtool")
@pytest.mark.parametrize(
    "command", ["check config prometheus.yml", "check rules alerts.yml", "test rules alerts_test.yml"]
)
def test_prometheus_accepts_its_files_and_each_alert_fires(command: str) -> None:
    done = subprocess.run(["promtool", *command.split()], cwd=PROMETHEUS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_test() -> None:
    tests = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
    assert {rule["alert"] for rule in RULES} | {"nothing is wrong"} == {test["name"] for test in tests}
