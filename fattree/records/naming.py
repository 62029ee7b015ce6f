"""The columns that name a run: faults as short texts, and the hash of the whole scenario.

Rows that agree in them are of the same experiment, whatever file it came from.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fattree.errors import FabricError
from fattree.experiment.failures import Place
from fattree.experiment.model import Scenario, with_files
from fattree.files.text_file import read_bytes

# Hex digits of the hash: 64 bits.
DIGITS = 16
# Names, which do not change a run; a program or a rule is known by the load balancer's name.
CALLED = {"name", "label", "program", "host_rule", "agent_packet"}
PLACES = ("link", "host", "switch")
# Keys that are younger than stored runs: at their defaults they do not change a hash.
YOUNG = {
    ("controller", "kind"): "central",
    ("controller", "weights"): "exact",
    ("controller", "spread_rtt"): [],
    ("load_balancer", "connections"): "message",
    ("transport", "acks_first"): False,
}


def named(scenario: Scenario, policy: str = "") -> dict[str, Any]:
    """Return the fields of a record that name its run, apart from sizes.

    `policy` is the name of the user's program, if it ran instead of the scenario's policy.
    """
    failures = scenario.failures
    balancer = policy or scenario.balancer
    return {
        "name": scenario.name,
        "label": scenario.label,
        "policy": balancer,
        "seed": scenario.seed,
        "failure_rate": failures.rate,
        "events": faults_text(failures.events),
        "degraded": faults_text(failures.degraded),
        "losses": faults_text(failures.losses),
        "convergence_rtt": failures.convergence_rtt,
        "scenario_hash": scenario_hash(scenario, balancer),
    }


def faults_text(faults: Iterable[Place]) -> str:
    """Return faults as one short text: `edge0_0-agg0_1 down_ns=5000; core0_1 down_ns=1 up_ns=9`.

    Each is its place with the keys that are not at their defaults, in the order of the texts.
    """
    return "; ".join(sorted(map(_fault_text, faults)))


def _fault_text(fault: Place) -> str:
    settings = fault.model_dump(exclude_defaults=True, exclude=set(PLACES))
    return " ".join(
        [fault.name, *(f"{key}={_value_text(value)}" for key, value in settings.items())]
    )


def _value_text(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)


def scenario_hash(scenario: Scenario, balancer: str) -> str:
    """Return the hash of all settings of a run, the same on every network.

    Of traffic files, names and contents count, and not where they lie.
    """
    files = {file: Path(file).name for file in scenario.files}
    values = with_files(scenario, files).model_dump(mode="json", exclude=CALLED)
    for (table, key), default in YOUNG.items():
        if values[table][key] == default:
            del values[table][key]

    texts = [addition.text for addition in (scenario.host_rule, scenario.agent_packet) if addition]
    text = json.dumps([balancer, values, [*map(_content_hash, files)], texts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _content_hash(file: str) -> str:
    # A store may be read where the files of its runs are not.
    try:
        return hashlib.sha256(read_bytes(file, FabricError)).hexdigest()
    except FabricError:
        return ""
