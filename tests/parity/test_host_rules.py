"""Host rules of the user's own: the same on all networks, and as ours where they say the same."""

import ctypes
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sim
from controller.errors import ControllerError
from emulation.errors import EmulationError
from emulation.virtual import simulated
from fattree.demand.workloads.file import About, write_workload
from fattree.demand.workloads.graph import Graph
from fattree.errors import FabricError
from fattree.experiment.model import Collective, Fabric, HostRule, LoadBalancer, Scenario
from hostagent.own_rule import own_rule
from hostagent.rules import rules
from hostagent.transports.state import SENDER, blank
from sim.arrays.host_rule_code import RULES, compiled
from tests.parity.drawing import pairs
from tests.parity.scenarios import HORIZON_PS, scenarios
from tests.parity.test_virtual_equals_simulator import FAILING, assert_same
from tests.python_network.fabric import PythonFabric
from tests.test_docs_your_own import RULE

FRESH = """
from hostagent.transports.labels import random_label
def next_label(state, sender, rules, packets, now_ps):
    return random_label(sender, rules)
def on_ack(state, sender, rules, label, marked, now_ps):
    pass
"""
FIXED = FRESH.replace("return random_label(sender, rules)", "return sender.label")
# Something of everything, so that a difference in any of it changes labels.
EVERYTHING = """
from dataclasses import dataclass, field
from hostagent.transports.labels import expire, random_label
SPAN = 1 << 11
@dataclass
class State:
    hash: int = 0x1234567
    late: int = 0
    cells: list[int] = field(default_factory=lambda: [1, -2, 3] * 2)
def stirred(state, number):
    state.hash = (state.hash * 6364136223846793005 + number) ^ (state.hash >> 29)
    state.cells[number] += state.hash % SPAN
    return state.hash // SPAN
def next_label(state, sender, rules, packets, now_ps):
    state.late += expire(sender, rules, packets, now_ps)
    stirred(state, sender.sent - 3 * sender.acked)
    if state.late & 1 or sender.srtt_ps > 2 * rules.zero_load_rtt_ps:
        return random_label(sender, rules)
    best = 0
    for step in range(len(state.cells)):
        best = step if state.cells[step] < state.cells[best] else best
    return stirred(state, best) + now_ps // sender.gap_ps
def on_ack(state, sender, rules, label, marked, now_ps):
    stirred(state, label if not marked else -label)
"""
RULES_OF_THE_TEST = {"fresh": FRESH, "everything": EVERYTHING, "the page's": RULE}
LIKE = st.sampled_from(["host_pkt_ar", "flow", "subflow", "ofan", "rsq"])


def with_rule(scenario: Scenario, text: str) -> Scenario:
    return scenario.model_copy(update={"host_rule": HostRule(file="mine.py", text=text)})


def small(text: str, policy: str = "host_pkt_ar", **more: Any) -> Scenario:
    collective = Collective(message_bytes=24 * 4096)
    return with_rule(
        Scenario(policy=policy, fabric=Fabric(k=4), collective=collective, seed=5, **more), text
    )


@pytest.mark.parametrize(
    ("text", "policy"), [(FRESH, "host_pkt"), (FIXED, "flow"), (FIXED, "subflow")]
)
def test_a_rule_that_says_what_ours_says_does_what_ours_does(text: str, policy: str) -> None:
    mine = small(text, policy)
    ours = sim.run(mine.model_copy(update={"host_rule": None}))
    result = sim.run(mine)
    assert_same(PythonFabric(mine).run(), result)
    assert result.done_ps.tolist() == ours.done_ps.tolist()
    assert (result.record.policy, ours.record.policy) == ("mine.py", policy)


@pytest.mark.parametrize(("rule", "failing"), pairs([*RULES_OF_THE_TEST], [*FAILING]))
def test_rules_are_the_same_on_both_networks(rule: str, failing: str) -> None:
    text, failures = RULES_OF_THE_TEST[rule], FAILING[failing]
    mine = small(text, failures=failures, load_balancer=LoadBalancer(ecn_percent=0.5))
    assert_same(PythonFabric(mine).run(), sim.run(mine))


def test_states_are_of_flows_also_beside_computations(tmp_path: Path) -> None:
    # Computations come first: messages have numbers beyond that of senders.
    hosts = np.arange(16)
    zeros = np.zeros(16, dtype=np.int64)
    graph = Graph(
        source=np.tile(hosts, 2),
        destination=np.concatenate([hosts, (hosts + 5) % 16]),
        size=np.concatenate([zeros, zeros + 100_000]),
        compute_ps=np.concatenate([1000 * hosts, zeros]),
        waiting=16 + hosts,
        awaited=hosts,
    )
    write_workload(tmp_path / "step.parquet", graph, About(ranks=16))
    collective = Collective(matrix="workload", file=str(tmp_path / "step.parquet"))
    mine = small(EVERYTHING).model_copy(update={"collective": collective})
    result = sim.run(mine)
    assert_same(PythonFabric(mine).run(), result)
    assert simulated.run(mine).done_ps.tolist() == result.done_ps.tolist()


def test_threads_change_nothing() -> None:
    mine = small(EVERYTHING)
    assert sim.run(mine, threads=2).done_ps.tolist() == sim.run(mine).done_ps.tolist()


@given(LIKE.flatmap(scenarios), st.sampled_from(sorted(RULES_OF_THE_TEST)))
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_scenarios_are_the_same_on_both_networks(scenario: Scenario, name: str) -> None:
    mine = with_rule(scenario, RULES_OF_THE_TEST[name])
    try:
        result = sim.run(mine, horizon_ps=HORIZON_PS)
    except (FabricError, sim.UnfinishedError):
        assume(False)
        raise
    try:
        fabric = PythonFabric(mine)
    # Only the emulated networks refuse: stale queues, groups beyond a program's registers.
    except (EmulationError, ControllerError):
        assume(False)
        raise
    assert_same(fabric.run(horizon_ps=HORIZON_PS), result)


def expression(draw: random.Random, depth: int) -> str:
    """Return a random number of the language."""
    names = ("a", "b", "state.x", "state.y", "state.cells[a]", "state.cells[b]", "marked", "label")
    if depth == 0:
        edges = (0, 1, 2, 63, 64, 255, -1, -7, 2**31, 2**63 - 1, -(2**63) + 1)
        return draw.choice((*names, str(draw.choice(edges))))
    first, second, third = (expression(draw, depth - 1) for _ in range(3))
    forms = (
        *(f"({first} {operator} {second})" for operator in ("+", "-", "*", "//", "%", "<<", ">>")),
        *(
            f"({first} {operator} {second})"
            for operator in ("&", "|", "^", "and", "or", "<", ">=", "==")
        ),
        *(f"({first} {operator} {second} {operator} {third})" for operator in ("<", "!=")),
        *(f"({name}({first}))" for name in ("abs", "int", "bool", "not ", "~", "-")),
        *(f"{name}({first}, {second}, {third})" for name in ("min", "max")),
        f"({first} if {second} else {third})",
        f"state.cells[{first}]",
        f"helper(state, {first}, {second})",
    )
    return draw.choice(forms)


def random_rule(draw: random.Random) -> str:
    """Return a rule of random statements."""
    lines = []
    for _ in range(30):
        target = draw.choice(
            ("a", "b", "state.x", "state.y", f"state.cells[{expression(draw, 1)}]")
        )
        operator = draw.choice(("=", "=", "+=", "*=", "//=", "%=", "<<=", ">>=", "^=", "-="))
        if draw.random() < 0.2:
            lines.append(f"if {expression(draw, 2)}:")
            lines.append(f"    {target} {operator} {expression(draw, 2)}")
        elif draw.random() < 0.2:
            lines.append(f"for step in range({expression(draw, 1)} % 5):")
            lines.append(f"    state.cells[step] {operator} {expression(draw, 2)} + step")
        else:
            lines.append(f"{target} {operator} {expression(draw, 3)}")
    return rule_of(lines)


def rule_of(lines: Sequence[str]) -> str:
    """Return a rule that runs these lines at every ACK, with its label in a and the time in b."""
    body = "\n    ".join(lines)
    return f"""
from dataclasses import dataclass, field
@dataclass
class State:
    x: int = 3
    y: int = -5
    cells: list[int] = field(default_factory=lambda: [1, 2, 3, -4, 5])
def helper(state, a, b):
    state.x += a
    if a < b:
        return b - a
    return state.x > b
def on_ack(state, sender, rules, label, marked, now_ps):
    a = label
    b = now_ps
    {body}
    state.x ^= a
    state.y ^= b
def next_label(state, sender, rules, packets, now_ps):
    return 0
"""


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
)
def test_machine_code_computes_as_plain_python_does(seed: int) -> None:
    draw = random.Random(seed)
    acks = [
        (
            draw.getrandbits(16),
            draw.random() < 0.5,
            draw.choice((draw.getrandbits(4), draw.getrandbits(62))),
        )
        for _ in range(300)
    ]
    assert_same_states(random_rule(draw), acks)


def test_operators_have_the_same_ends() -> None:
    operators = ("b << by", "b >> by", "b // by", "b % by", "-b >> by", "-b // by", "-b % by")
    cells = ("state.x", "state.y", *(f"state.cells[{number}]" for number in range(5)))
    lines = ["by = a - 3", *map(" = ".join, zip(cells, operators, strict=True))]
    numbers = (0, 1, 7, 2**31, 2**62 + 5, 2**63 - 1)
    acks = [(label, False, number) for label in range(72) for number in numbers]
    assert_same_states(rule_of(lines), acks)


def test_sums_wrap_around_where_they_are_compared() -> None:
    doubled = ("state.x += state.x", "state.y *= 3", "state.cells[0] -= state.y")
    compared = ("helper(state, state.x, 63)", "abs(state.y) < state.y", "-state.x > state.x + 1")
    cells = (f"state.cells[{number}]" for number in (1, 2, 3))
    lines = [*doubled, *map(" = ".join, zip(cells, compared, strict=True))]
    assert_same_states(rule_of(lines), [(0, False, 0)] * 200)


def assert_same_states(text: str, acks: Iterable[tuple[int, bool, int]]) -> None:
    plain, native = own_rule(text, "mine.py"), compiled(text, "mine.py")
    shared = rules(Scenario())
    rule_words = np.array([tuple(shared)], RULES)
    senders, state = np.zeros(1, SENDER), plain.fresh()
    cells = native.first.copy()
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)(native.on_ack.address)
    for label, marked, now_ps in acks:
        plain.on_ack(state, blank(SENDER), shared, label, marked, now_ps)
        places = [array.ctypes.data for array in (cells, senders, rule_words)]
        call(*places, label, marked, now_ps)
        assert [int(state.x), int(state.y), *map(int, state.cells)] == [
            int(cells["x"][0]),
            int(cells["y"][0]),
            *cells["cells"][0].tolist(),
        ]
