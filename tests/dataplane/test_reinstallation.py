"""New schedules under traffic: nothing is lost or misrouted, no packet sees half a schedule."""

from collections.abc import Iterator

import pytest

from controller.entries import Change
from controller.fabric_controller import LinkChange, Step
from tests.dataplane.rig import FabricRig, ack, data, scenario

REINSTALLATIONS = 50
PLANS = [frozenset({16 + 1}), frozenset({0}), frozenset({16 + 5, 3}), frozenset[int]()]


def single_updates(steps: list[Step]) -> Iterator[tuple[int, Change]]:
    """Yield updates singly, as a slow connection would deliver them."""
    for step in steps:
        for change in step.changes:
            yield step.switch, change


def replan(fabric: FabricRig, number: int) -> list[Step]:
    """Return the steps to the next of a round of plans; the links themselves stay up."""
    failed = PLANS[number % len(PLANS)]
    now = fabric.controller.failed
    return fabric.controller.on_event(0, LinkChange(down=failed - now, up=now - failed))


OTHERS = ["switch_pkt", "flow", "jsq", "ofan_jsq_start"]


@pytest.mark.parametrize(
    "policy",
    ["ofan", "simple_rr", *(pytest.param(slug, marks=pytest.mark.slow) for slug in OTHERS)],
)
def test_every_packet_arrives_during_50_reinstallations(policy: str) -> None:
    fabric = FabricRig(scenario(policy))
    sent = 0
    for number in range(REINSTALLATIONS):
        for switch, change in single_updates(replan(fabric, number)):
            fabric.rigs[switch].session.write((change,))
            source, destination = sent * 5 % 16, sent * 11 % 16
            hops, frame = fabric.carry(
                source, (data if sent % 2 else ack)(fabric.tree, source, destination, sent % 2**16)
            )
            assert frame is not None and fabric.host_reached(hops) == destination
            sent += 1
    assert sent > 1000
    counts = [bench.switch.counts for bench in fabric.rigs]
    assert sum(c.received - c.transmitted for c in counts) == 0


def test_a_pointer_walks_the_old_schedule_until_its_group_moves_and_then_the_new_one() -> None:
    fabric = FabricRig(scenario("ofan", k=4))
    edge = fabric.rigs[0]
    for number in range(8):
        before = fabric.controller.forwarding()
        steps = [step for step in replan(fabric, number) if step.switch == 0]
        after = fabric.controller.forwarding()
        allowed = [
            set(state.schedule(0, int(state.group_schedule[7])).tolist())
            for state in (before, after)
        ]
        seen = []
        for _, change in single_updates(steps):
            edge.session.write((change,))
            seen += [(edge.port_of(data(fabric.tree, 0, 15)) or 0) - 3 for _ in range(3)]
        assert set(seen) <= allowed[0] | allowed[1]
        assert set(seen[-2:]) <= allowed[1] or not steps


def test_a_repaired_fabric_holds_the_first_plan_exactly() -> None:
    fabric = FabricRig(scenario("ofan", k=4))
    first = [{(*entry[:2],): entry for entry in bench.session.read()} for bench in fabric.rigs]
    for number in range(2 * len(PLANS)):
        fabric.apply(replan(fabric, number))
    assert [
        {(*entry[:2],): entry for entry in bench.session.read()} for bench in fabric.rigs
    ] == first
