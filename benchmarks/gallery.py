"""The gallery beside the paper's load balancers: the runs behind a table of docs/gallery.md.

python -m benchmarks.tables gallery
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.texts.shipped import EXPERIMENTS
from sim.runs.engine import run
from sim.runs.results import Result

K = 8
MIB = 1 << 20
SEEDS = range(1, 11)
FAILED: Mapping[str, Any] = {"events": [{"link": "agg0_0-core0_0", "down_ns": 0}]}
SLOW: Mapping[str, Any] = {
    "degraded": [{"link": "agg0_0-core0_0", "rate": 0.25}],
    "convergence_rtt": "inf",
}
COLUMNS = (
    *("load balancer", "lines of P4", "all links up", "a core link failed"),
    *("a core link at a quarter, not known", "longest queue of uplinks, E>A"),
)
# Names in the table: the program's file and its macros.
PROGRAMS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "DRILL(2, 1)": ("gallery/drill.p4", {}),
    "DRILL(1, 1): two choices with memory": ("gallery/drill.p4", {"SAMPLES": 1}),
    "Two choices": ("two_choices.p4", {}),
    "CONGA (flowlets after 1 µs)": ("gallery/conga.p4", {}),
    "LetFlow (flowlets after 1 µs)": ("flowlets.p4", {}),
    "Presto": ("gallery/presto.p4", {}),
    "Weighted round robin": ("gallery/weighted_round_robin.p4", {}),
}
PAPER = ("flow", "rsq", "jsq", "ofan")


def row(name: str, lines: str, settings: Mapping[str, Any]) -> Sequence[str]:
    """Return a row: CCT over the bound in three states of the links, and uplinks' queues."""
    results = {
        state: [_run({**settings, "seed": seed, "failures": dict(failures)}) for seed in SEEDS]
        for state, failures in (("whole", {}), ("failed", FAILED), ("slow", SLOW))
    }
    over = [
        _spread([100 * result.increase for result in of_state]) + " %"
        for of_state in results.values()
    ]
    queues = [result.record.max_queue_layers[0] for result in results["whole"]]
    return (name, lines, *over, _spread(queues))


def _run(settings: Mapping[str, Any]) -> Result:
    scenario = Scenario.model_validate(
        {"fabric": {"k": K}, "collective": {"message_bytes": MIB}, **settings}
    )
    if not scenario.program:
        return run(scenario)

    # It compiles programs, which no other table needs.
    from emulation.virtual import simulated

    return simulated.run(scenario)


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


def program(name: str) -> Sequence[str]:
    """Return the row of a program."""
    file, defines = PROGRAMS[name]
    path = EXPERIMENTS / file
    lines = len(path.read_text(encoding="utf-8").splitlines())
    settings = {"policy": "simple_rr", "program": str(path), "defines": dict(defines)}
    return row(name, str(lines), settings)


def of_paper(policy: str) -> Sequence[str]:
    """Return the row of a load balancer of the paper."""
    return row(POLICIES[policy].label, "", {"policy": policy})


ROWS = {name: partial(program, name) for name in PROGRAMS} | {
    POLICIES[policy].label: partial(of_paper, policy) for policy in PAPER
}
