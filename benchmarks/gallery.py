"""The gallery beside the paper's load balancers: the runs behind two tables of docs/gallery.md.

python -m benchmarks.tables gallery gallery_feedback
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
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
    "HULA (flowlets after 1 µs)": ("gallery/hula.p4", {}),
    "LetFlow (flowlets after 1 µs)": ("flowlets.p4", {}),
    "Presto": ("gallery/presto.p4", {}),
    "Weighted round robin": ("gallery/weighted_round_robin.p4", {}),
}
PAPER = ("flow", "rsq", "jsq", "ofan")


# Flows that arrive at random between hosts of different leaves, for feedback: 8 leaves, 8 spines.
LEAF_SPINE: Mapping[str, Any] = {"edges_per_pod": 8, "hosts_per_edge": 8, "aggs_per_pod": 8}
HOSTS, HOSTS_PER_LEAF = 64, 8
FLOW_BYTES = 256 * 1024
ARRIVALS_US = 150
LOAD = 0.3
BYTES_PER_US = 100_000
SLOW_SPINE: Mapping[str, Any] = {
    "degraded": [{"link": "edge0_0-agg0_0", "rate": 0.25}],
    "convergence_rtt": "inf",
}
FEEDBACK_COLUMNS = (
    *("load balancer", "mean, all links up", "99th percentile"),
    *("mean, a link at a quarter, not known", "99th percentile"),
)
FLOWLETS: Mapping[str, int] = {"GAP_US": 20}
# CONGA's comparison of feedback with the load of its own uplinks.
COMPARISON = "if (congestion > uplinks.queue##N)"


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


def arrivals(seed: int) -> str:
    """Return a connection matrix: Poisson arrivals at each host, random destinations elsewhere."""
    rng = np.random.default_rng(seed)
    flows: list[tuple[float, int, int]] = []
    for host in range(HOSTS):
        start_us = 0.0
        while (
            start_us := start_us + rng.exponential(FLOW_BYTES / LOAD / BYTES_PER_US)
        ) < ARRIVALS_US:
            leaf = host // HOSTS_PER_LEAF
            skipped = rng.integers(HOSTS - HOSTS_PER_LEAF)
            is_behind = skipped >= leaf * HOSTS_PER_LEAF
            flows.append((start_us, host, int(skipped + HOSTS_PER_LEAF * is_behind)))

    lines = [
        f"{host}->{destination} id {number} start {round(start_us * 1e6)} size {FLOW_BYTES}"
        for number, (start_us, host, destination) in enumerate(sorted(flows), start=1)
    ]
    return f"Nodes {HOSTS}\nConnections {len(lines)}\n\n" + "\n".join(lines) + "\n"


def flow_times(name: str, settings: Mapping[str, Any]) -> Sequence[str]:
    """Return a row: the mean and the 99th percentile of flows' times, in both states of links."""
    cells = [name]
    for failures in ({}, SLOW_SPINE):
        means, tails = [], []
        for seed in SEEDS:
            with TemporaryDirectory() as folder:
                file = Path(folder) / "arrivals.cm"
                file.write_text(arrivals(seed), encoding="utf-8")
                matrix = {"matrix": "file", "file": str(file), "start_unit": "ps"}
                tables = {"fabric": LEAF_SPINE, "collective": matrix, "failures": dict(failures)}
                result = _run({**settings, **tables, "seed": seed})

            times_us = (result.done_ps - result.start_ps) / 1e6
            means.append(float(times_us.mean()))
            tails.append(float(np.percentile(times_us, 99)))

        cells += [_spread(means), _spread(tails)]

    return cells


def conga(name: str, has_feedback: bool) -> Sequence[str]:
    """Return the row of CONGA, or of its rule for the load of a switch's own uplinks alone."""
    text = (EXPERIMENTS / "gallery" / "conga.p4").read_text(encoding="utf-8")
    assert COMPARISON in text
    with TemporaryDirectory() as folder:
        program = Path(folder) / "conga.p4"
        program.write_text(text if has_feedback else text.replace(COMPARISON, "if (false)"))
        settings = {"policy": "simple_rr", "program": str(program), "defines": dict(FLOWLETS)}
        return flow_times(name, settings)


def flow_times_of_program(name: str, file: str) -> Sequence[str]:
    """Return the row of a program in which a flow is a flowlet."""
    program = str(EXPERIMENTS / file)
    settings = {"policy": "simple_rr", "program": program, "defines": dict(FLOWLETS)}
    return flow_times(name, settings)


def flow_times_of_paper(policy: str) -> Sequence[str]:
    """Return the row of a load balancer of the paper."""
    return flow_times(POLICIES[policy].label, {"policy": policy})


FEEDBACK_ROWS = {
    "CONGA": partial(conga, "CONGA", has_feedback=True),
    "without feedback": partial(conga, "CONGA without feedback", has_feedback=False),
    "HULA": partial(flow_times_of_program, "HULA", "gallery/hula.p4"),
    "LetFlow": partial(flow_times_of_program, "LetFlow", "flowlets.p4"),
} | {policy: partial(flow_times_of_paper, policy) for policy in ("flow", "rsq", "ofan")}
