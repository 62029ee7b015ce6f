"""The reference compiler, where it is installed: its JSON and ours do the same on our switch.

Every program of p4src gets the controller's plan through the P4Info of either compiler, then the
same 10,000 packets: real ones, damaged ones, short ones, noise. Every language case gets its
script.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.fabric_controller import FabricController
from controller.session import InProcess, Session
from emulation.programs.p4c import p4c
from emulation.programs.switch_program import Compiler, built_in, size_of
from emulation.virtual.control import SwitchDraws
from fattree.experiment.model import Fabric, Scenario
from fattree.policies import POLICIES
from fattree.shape.addressing import device_id, host_ip, host_mac, switch_ip, switch_name
from fattree.shape.topology import FatTree
from hostagent.packets import AckFrames, DataFrames, Ends, wrap
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError
from ofan_p4.stf.bench import Bench
from ofan_p4.stf.compare import first_difference
from ofan_p4.stf.script import parse_script

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on the PATH"),
]
HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.stf"), key=lambda path: path.stem)
PACKETS = 10_000
FAILED_LINKS = 3
CPU_PORT = 510
# Programs that p4c 1.2.5.16 refuses, or compiles to something else than the specification's
# meaning, although we take them.
STRICTER = "p4c's type checker is stricter"
GRAMMAR = "p4c's grammar or back end has no such loop, branch or annotation"
UNNAMED = "p4c wants a @name on a table property that is an instance"
ONCE = "p4c's back end runs the body of a loop once, silently"
ERRORS = "p4c's parsers accept where no case of a select fits, and at reject"
HEADERS = "p4c's JSON names a header by an expression, which our switch does not take"
BEYOND_P4C = {
    "old_calls": "calls that p4c has removed",
    "registers": "p4c loses what an extern writes into a slice",
    "calls_indexes_once": "p4c takes no slice for what an extern writes, and forgets indexes",
    "compound_assignments_in_order": "p4c reads the left side of += behind the right one",
    "ranges_across_zero": "p4c takes no negative bounds of ranges",
    "exits_copy_out": "p4c's exit forgets the results of the controls that it ends",
    "field_lists_nested": "p4c leaves a header's fields out of field lists, annotated or not",
    "strings_of_several_lines": "p4c's JSON has a name's line ends as they are, so it is none",
    **dict.fromkeys(("action_profile", "action_selector"), UNNAMED),
    **dict.fromkeys(("annotations_ignored", "branches_in_parsers"), GRAMMAR),
    **dict.fromkeys(("loops_in_parsers", "loops_over_values", "loops_unrolled"), GRAMMAR),
    **dict.fromkeys(("loops_of_several_variables", "loops_over_run_time_ranges"), GRAMMAR),
    **dict.fromkeys(
        ("actions", "concatenation", "conditional_operator", "conditions", "enums_and_new_types"),
        STRICTER,
    ),
    **dict.fromkeys(("generic_functions", "nested_controls", "shifts", "shifts_wide"), STRICTER),
    **dict.fromkeys(("log_messages", "types_new_type_constants"), STRICTER),
    **dict.fromkeys(("table_entry_priorities", "table_validity_key", "value_set_masks"), STRICTER),
    **dict.fromkeys(("loops_and_switch", "loops_at_run_time"), ONCE),
    **dict.fromkeys(("parser_errors", "parser_no_match"), ERRORS),
    **dict.fromkeys(("stack_bounds", "unions_in_stacks", "varbit_variables"), HEADERS),
}


def first_policies() -> dict[str, str]:
    """Return one load balancer for each program of p4src."""
    policies: dict[str, str] = {}
    for slug, policy in POLICIES.items():
        policies.setdefault(policy.program, slug)

    return policies


def switch_of(scenario: Scenario, index: int, compiler: Compiler) -> Switch:
    """Return a switch with a program and the controller's entries for a fabric with failures."""
    program = built_in(scenario.scheme.program, size_of(scenario.tree), compiler=compiler)
    switch = Switch(
        device_id(index),
        lambda: 0,
        SwitchDraws(scenario.seed, index),
        scenario.tree.ports(index),
        CPU_PORT,
    )
    session = Session(
        InProcess(P4RuntimeService(switch), StatusError),
        program.pipeline,
        device_id(index),
        switch_name(scenario.tree, index),
    )
    session.open()
    session.push(program.bmv2_json)

    for step in FabricController(scenario, program.pipeline, range(FAILED_LINKS)).start():
        if step.switch == index:
            session.write(step.changes)

    return switch


def frames(tree: FatTree, seed: int) -> Iterator[tuple[int, bytes]]:
    """Yield (port, frame) pairs; the same for the same seed."""
    rng = random.Random(seed)
    for number in range(PACKETS):
        frame = _valid(tree, rng, number)
        kind = rng.randrange(10)
        if kind < 3:
            frame = _damaged(frame, rng)
        elif kind == 3:
            frame = frame[: rng.randrange(len(frame) + 1)]
        elif kind == 4:
            frame = rng.randbytes(rng.randrange(200))

        yield rng.choice((*range(1, tree.k + 1), CPU_PORT)), frame


def _valid(tree: FatTree, rng: random.Random, number: int) -> bytes:
    source, destination = rng.sample(range(tree.hosts), 2)
    ends = Ends(
        host_mac(tree, source),
        host_mac(tree, destination),
        host_ip(tree, source),
        host_ip(tree, destination),
    )
    label = rng.randrange(1 << 16)
    psn = number
    data = rng.random() < 0.5
    frame = (
        DataFrames(ends, 7, 256).frame(label, psn)
        if data
        else AckFrames(ends, 7).frame(label, psn, False, psn + 1)
    )

    return (
        wrap(frame, ends.source_ip, switch_ip(tree, 2 * tree.edges + rng.randrange(tree.cores)))
        if rng.random() < 0.2
        else frame
    )


def _damaged(frame: bytes, rng: random.Random) -> bytes:
    changed = bytearray(frame)
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(min(len(changed), 60))] = rng.choice(
            (0, 1, 4, 8, 0x45, 255, rng.randrange(256))
        )

    return bytes(changed)


def outputs(switch: Switch, port: int, frame: bytes) -> list[tuple[int, bytes]]:
    """Return the (port, frame) pairs that a frame becomes."""
    waiting = switch.ingress(port, frame)
    sent = []
    while waiting:
        sent += [(out.port, out.frame) for out in switch.egress(waiting.pop(0))]
        waiting += switch.take_requeued()

    return sent


@pytest.mark.parametrize(("program", "policy"), first_policies().items())
@pytest.mark.parametrize("role", ["edge", "agg", "core"])
def test_programs_of_both_compilers_send_the_same(program: str, policy: str, role: str) -> None:
    scenario = Scenario(policy=policy, seed=1, fabric=Fabric(k=4))
    tree = scenario.tree
    index = {"edge": 0, "agg": tree.edges, "core": 2 * tree.edges}[role]
    ours, theirs = (switch_of(scenario, index, compiler) for compiler in ("ofan", "p4c"))
    sent = 0

    for port, frame in frames(tree, seed=len(program)):
        expected = outputs(theirs, port, frame)
        assert outputs(ours, port, frame) == expected, f"port {port}: {frame.hex()}"
        sent += len(expected)

    assert sent > PACKETS // 5, "too few packets were forwarded to say anything"


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_cases_compiled_by_p4c_send_what_they_expect(case: Path, tmp_path: Path) -> None:
    if case.stem in BEYOND_P4C:
        pytest.skip(BEYOND_P4C[case.stem])

    source, _ = p4c(case.with_suffix(".p4"), [case.parent], {}, tmp_path)
    program: dict[str, Any] = json.loads(source.read_bytes())
    bench = Bench(program)

    for command in parse_script(case.read_text()).commands:
        bench.run(command)

    assert first_difference(program, bench.expected, bench.sent) is None
