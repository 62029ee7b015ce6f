"""Keys of an experiment that no run of it heeds, in a line each: no key is silently ignored.

A key without effect in any experiment is refused (`fattree.experiment`); this depends on the load
balancers that run and on when their flows end.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from fattree.demand import traffic
from fattree.experiment.model import BUILT_IN, Scenario, Settings
from fattree.policies import LEARNING, OUTER_BYTES, POLICIES, ROTATIONS, Chooser, LabelRule
from fattree.records.record import Record
from fattree.units import PS_PER_NS, PS_PER_US


class Reader(NamedTuple):
    """Which runs heed a key, and why others do not."""

    reads: Callable[[Scenario], bool]
    why: str


def _switches(*choosers: Chooser) -> Reader:
    """Return the runs with switches that choose so; a program of the user's may heed anything."""
    slugs = [slug for slug, policy in POLICIES.items() if policy.chooser in choosers]
    return Reader(
        lambda run: run.policy in slugs or run.program not in (None, BUILT_IN), _named(slugs)
    )


def _hosts(rule: LabelRule) -> Reader:
    """Return the runs with hosts that choose labels so; a user's host rule may heed anything."""
    slugs = [slug for slug, policy in POLICIES.items() if policy.label_rule == rule]
    return Reader(lambda run: run.policy in slugs or run.host_rule is not None, _named(slugs))


def _named(slugs: Iterable[str]) -> str:
    return f"it is for {', '.join(slugs)}"


ROTATION = _switches(*ROTATIONS)
PLB = _hosts(LabelRule.PLB)
REPS = _hosts(LabelRule.REPS)
READERS = {
    "packets.tunnel_bytes": _switches(*OUTER_BYTES),
    "load_balancer.rr_pointer": _switches(Chooser.ROUND_ROBIN),
    "load_balancer.schedule_orders": ROTATION,
    "load_balancer.edge_pointers": ROTATION,
    "load_balancer.agg_pointers": ROTATION,
    "load_balancer.queue_staleness_ns": _switches(
        Chooser.BINNED, Chooser.SHORTEST, Chooser.ROTATION_SHORTEST_START
    ),
    "load_balancer.bins_percent": _switches(Chooser.BINNED),
    "load_balancer.plb_acks": PLB,
    "load_balancer.plb_percent": PLB,
    "load_balancer.plb_gaps": PLB,
    "load_balancer.freeze_us": REPS,
    "load_balancer.reps_explore_packets": REPS,
    "load_balancer.connections": Reader(
        lambda run: run.scheme.label_rule in LEARNING and run.host_rule is None,
        _named(slug for slug, policy in POLICIES.items() if policy.label_rule in LEARNING),
    ),
    "load_balancer.ecn_full_percent": Reader(
        lambda run: run.marking is not None, "nothing is marked (load_balancer.ecn_percent)"
    ),
    "load_balancer.ecn_chance": Reader(
        lambda run: run.marking is not None and run.marking.slope > 0,
        "it is for two bounds (load_balancer.ecn_full_percent)",
    ),
    "transport.sack_threshold": Reader(
        lambda run: run.transport.recovery == "sack" or run.host_rule is not None,
        'it is for transport.recovery = "sack"',
    ),
    "transport.reorder_timeout_rtt": Reader(
        lambda run: run.transport.reorder_packets > 0,
        "NICs keep no packets (transport.reorder_packets)",
    ),
    "defines": Reader(
        lambda run: run.program not in (None, BUILT_IN), "no program of yours runs (--program)"
    ),
    "failures.at_ns": Reader(lambda run: run.failures.rate > 0, "failures.rate is 0"),
    "failures.convergence_rtt": Reader(
        lambda run: bool(run.failures.rate or run.failures.events or run.failures.degraded),
        "no link fails",
    ),
    "controller.weights": Reader(
        lambda run: (
            run.scheme.weighted
            and bool(run.failures.rate or run.failures.events or run.failures.degraded)
        ),
        "all links have the same weight",
    ),
    "controller.spread_rtt": Reader(
        lambda run: (
            run.convergence_ps is not None
            and bool(run.failures.rate or run.failures.events or run.failures.degraded)
        ),
        "routes never change",
    ),
    "failures.local_repair": Reader(
        lambda run: bool(run.failures.rate or run.failures.events), "no link fails"
    ),
}


def unread(scenarios: Iterable[Scenario]) -> list[str]:
    """Return a line for each key that has another value than by default, and that no run heeds."""
    unheeded: dict[str, bool] = {}
    for scenario in scenarios:
        for key, reader in READERS.items():
            if unheeded.get(key, True) and _value(scenario, key) != DEFAULTS[key]:
                unheeded[key] = not reader.reads(scenario)

    return [
        f"{key} has no effect here: {READERS[key].why}" for key, is_so in unheeded.items() if is_so
    ]


def punished(scenarios: Iterable[Scenario]) -> list[str]:
    """Return lines about our load balancers with a costly order of packets, and under pauses.

    The order that the user's programs and host rules keep is unknown.
    """
    ours = [scenario for scenario in scenarios if not scenario.own_name]
    late = _labels(
        scenario
        for scenario in ours
        if scenario.transport.recovery == "go_back_n"
        and not scenario.transport.reorder_packets
        and scenario.scheme.reorders
    )
    paused = _labels(
        scenario
        for scenario in ours
        if scenario.fabric.flow_control == "pfc" and not scenario.scheme.pauses
    )
    lines = {
        f"go-back-N takes reordered packets for lost ones: {late} will be slow"
        " (transport.recovery)": late,
        f"{paused}: MRC is deployed with PFC off (fabric.flow_control)": paused,
    }
    return [line for line, labels in lines.items() if labels]


def _labels(scenarios: Iterable[Scenario]) -> str:
    return ", ".join(dict.fromkeys(scenario.scheme.label for scenario in scenarios))


def _value(settings: Settings, key: str) -> Any:
    table, _, name = key.partition(".")
    values = getattr(settings, table)
    return getattr(values, name) if name else values


DEFAULTS = {key: _value(Settings(), key) for key in READERS}


def late(runs: Iterable[tuple[Scenario, Record]]) -> list[str]:
    """Return a line for each failure that began when the flows of runs had finished."""
    counts: dict[tuple[str, float], int] = {}
    total = 0
    for scenario, record in runs:
        total += 1
        for name, at_ns in _beginnings(scenario):
            at_ps = at_ns * PS_PER_NS
            # Only then it takes reading the traffic: a CCT counts from each flow's own start.
            is_late = at_ps > record.cct_ps and at_ps > record.cct_ps + _last_start_ps(scenario)
            counts[name, at_ns] = counts.get((name, at_ns), 0) + is_late

    return [
        f"{name} at {at_ns * PS_PER_NS / PS_PER_US:,g} µs came after the last flow had finished"
        + (f", in {count} of {total} runs" if count < total else "")
        for (name, at_ns), count in counts.items()
        if count
    ]


def _beginnings(scenario: Scenario) -> Iterator[tuple[str, float]]:
    """Yield the links that fail or slow down during a run, and from when on in ns."""
    failures = scenario.failures
    if failures.rate and failures.at_ns:
        yield "the failure of failures.rate's links", failures.at_ns

    for event in failures.events:
        yield f"the failure of {event.name}", event.down_ns

    for slow in failures.degraded:
        yield f"the slowing down of {slow.name}", slow.at_ns


def _last_start_ps(scenario: Scenario) -> int:
    return int(traffic.flows(scenario).start_ps.max(initial=0))
