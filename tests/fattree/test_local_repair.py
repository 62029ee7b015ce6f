"""Local repair: schedules lose the slots of a switch's own dead uplinks, and only those."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fattree.policies import POLICIES
from fattree.routes.forwarding import forwarding
from fattree.routes.groups import NONE
from fattree.routes.local_repair import repaired
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree

TREE = FatTree(4)
ALL_UP = LinkState.without(TREE)


@given(
    policy=st.sampled_from(list(POLICIES)),
    failed=st.frozensets(st.integers(0, TREE.links - 1), max_size=6),
)
def test_only_dead_slots_are_left_out(policy: str, failed: frozenset[int]) -> None:
    before = forwarding(TREE, ALL_UP, POLICIES[policy], 1)
    after = repaired(before, LinkState.without(TREE, failed))
    for switch in range(2 * TREE.edges):
        for schedule in range(
            int(before.first_schedule[switch + 1] - before.first_schedule[switch])
        ):
            kept = [
                uplink
                for uplink in before.schedule(switch, schedule).tolist()
                if TREE.first_link(switch) + uplink not in failed
            ]
            assert after.schedule(switch, schedule).tolist() == kept


def test_group_without_a_slot_has_no_path() -> None:
    before = forwarding(TREE, ALL_UP, POLICIES["ofan"], 1)
    after = repaired(before, LinkState.without(TREE, frozenset([0, 1])))
    assert (after.edge_group[0] == NONE).all()
    assert np.array_equal(after.edge_group[1:], before.edge_group[1:])


def test_nothing_dead_changes_nothing() -> None:
    before = forwarding(TREE, ALL_UP, POLICIES["switch_pkt"], 1)
    after = repaired(before, ALL_UP)
    assert np.array_equal(after.slots, before.slots) and np.array_equal(
        after.group_start, before.group_start
    )
