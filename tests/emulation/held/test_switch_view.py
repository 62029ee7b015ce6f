"""The output of `ofan schedule` and `ofan pointers` for a switch."""

import pytest

from emulation.held import switch_view
from emulation.held.messages import PointerView
from tests.dataplane.rig import Rig, ack, data, rig, scenario


def pointers(bench: Rig) -> list[PointerView]:
    """Return the pointers of a switch as a person sees them."""
    entries = {(e.table, e.key): (e.action, e.arguments) for e in bench.session.read()}
    seen = switch_view.groups(bench.tree, bench.index, entries)
    return switch_view.pointers(seen, entries, bench.session.read_register("pointers"))


@pytest.mark.parametrize(
    ("policy", "rr_pointer", "acks"),
    [
        ("simple_rr", "per_class", "start"),
        ("simple_rr", "shared", None),
        ("switch_pkt", "per_class", None),
        ("ofan", "shared", "start"),
    ],
)
def test_a_pointer_that_classes_share_is_shown_once(
    policy: str, rr_pointer: str, acks: str | None
) -> None:
    bench = rig(scenario(policy, load_balancer={"rr_pointer": rr_pointer}), 0)
    assert {(row.data, row.acks) for row in pointers(bench)} == {("start", acks)}


def test_an_ack_moves_the_pointer_that_it_shares_with_data() -> None:
    bench = rig(scenario("simple_rr", load_balancer={"rr_pointer": "shared"}), 0)
    start = bench.entries("routes")[-1].arguments[3]
    seen = []
    for packet in (ack, data):
        bench.port_of(packet(bench.tree, 0, 15))
        seen += [(row.data, row.acks) for row in pointers(bench)]
    assert seen == [(f"slot {(start + n) % 2}", None) for n in (1, 2)]
