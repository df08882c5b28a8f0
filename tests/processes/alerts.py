"""The alerts that fire during a lasting fault, according to the processes' metrics."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
COUNTING = ("ManyErrors", "IndexerInterrupted", "TaskFailing")
"""Alerts on the frequency of events, which a short fault does not show."""

Scrapes = Mapping[str, str]
"""The answer of /metrics by job, such as `ledgerline-api`; empty without an answer."""

_STEP_S = 15
_STEPS_BEFORE, _STEPS_DURING = 4, 140  # too short for an alert before, half an hour and more during
_NAMED = frozenset(re.findall(r"\w+", RULES.read_text()))
"""With the names of all metrics that a rule asks for. Promtool takes as long for any other."""
# These metrics grow with the clock while a fault lasts.
_AGES = re.compile(r"ledgerline_(\w+_(age|unmoved)|usage_lag)_seconds\b")


def fired(faults: Mapping[str, tuple[Scrapes, Scrapes]], folder: Path) -> dict[str, set[str]]:
    """The alerts except COUNTING that fire if each fault lasts for half an hour, by metrics before and during it."""
    asked = 'group by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1h]))'
    at = {"eval_time": f"{(_STEPS_BEFORE + _STEPS_DURING) * _STEP_S}s"}
    tests = [
        {
            "interval": f"{_STEP_S}s",
            "input_series": [*_series(before, during)],
            # It expects nothing, so that promtool prints the actual samples.
            "promql_expr_test": [{"expr": f"{asked} or vector(1)", "exp_samples": [], **at}],
        }
        for before, during in faults.values()
    ]
    file = folder / "alerts.json"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": f"{_STEP_S}s", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    found = re.findall(r"\bgot: (.*)", told)
    assert len(found) == len(faults), told
    return {
        fault: set(re.findall(r'alertname="(\w+)"', line)) - {*COUNTING}
        for fault, line in zip(faults, found, strict=True)
    }


def _series(before: Scrapes, during: Scrapes) -> list[dict[str, str]]:
    """Each series as promtool reads it: its value before the fault, then during the fault, or none."""
    healthy, faulty = _samples(before), _samples(during)
    found = []
    for name in sorted(healthy.keys() | faulty.keys()):
        was = f"{healthy[name]}+0x{_STEPS_BEFORE - 1}" if name in healthy else f"_x{_STEPS_BEFORE}"
        growth = _STEP_S if _AGES.match(name) and faulty.get(name) not in ("0", "0.0") else 0
        # Prometheus marks a series as stale when a scrape lacks it.
        now = f"{faulty[name]}+{growth}x{_STEPS_DURING}" if name in faulty else f"stale _x{_STEPS_DURING}"
        found.append({"series": name, "values": f"{was} {now}"})
    return found


def _samples(scrapes: Scrapes) -> dict[str, str]:
    """The value of each of our series that a rule names, with its labels, and `up` as Prometheus adds it."""
    found = {}
    for job, text in scrapes.items():
        target = f'job="{job}",instance="{job}:1"'
        found[f"up{{{target}}}"] = "1" if text else "0"
        for line in text.splitlines():
            if line.startswith("ledgerline_") and line.split("{")[0].split(" ")[0] in _NAMED:
                name, value = line.rsplit(" ", 1)
                labels = name.partition("{")[2].removesuffix("}").rstrip(",")
                found[f"{name.partition('{')[0]}{{{target}{',' if labels else ''}{labels}}}"] = value
    return found
