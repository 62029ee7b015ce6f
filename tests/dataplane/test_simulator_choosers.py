"""Every program against the simulator's own function: same packets, queues, plans and ports."""

from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.fabric_controller import LinkChange
from fattree.policies import POLICIES
from fattree.routes.groups import NONE
from fattree.shape.addressing import link_name
from fattree.shape.topology import FatTree
from sim.arrays.network import build
from sim.kernels import lb
from tests.dataplane.rig import Rig, ack, controller_of, data, need_our_draws, rig, scenario

SCHEMES = list(
    {(p.chooser, p.weighted): p.slug for p in POLICIES.values() if not p.outer_bytes}.values()
)
# Simple RR's option concerns no other scheme.
CASES = [*((slug, "per_class") for slug in SCHEMES), ("simple_rr", "shared")]
NO_DRAWS = ("flow", "uet_bitmap", "mrc", "simple_rr", "ofan", "ofan_fib", "themis")
TREE = FatTree(4)
Packet = tuple[int, bool, int, int, tuple[int, ...]]

packets = st.lists(
    st.tuples(
        st.integers(4, TREE.hosts - 1),
        st.booleans(),
        st.integers(0, 2**16 - 1),
        st.integers(0, 2**24 - 1),
        st.tuples(
            *[st.sampled_from([0, 4158, 8316, 39_999, 40_000, 80_000, 200_000])] * TREE.edge_uplinks
        ),
    ),
    min_size=15,
    max_size=40,
)

# One link below an agg and one above: no host is cut off.
failures = st.tuples(st.integers(0, 15), st.integers(16, 31)).map(frozenset)


class Simulated:
    """One switch of the simulator."""

    def __init__(self, network: object, switch: int) -> None:
        self.network, self.switch = network, switch
        self.world = network.world  # type: ignore[attr-defined]

    def uplink(
        self,
        state: int,
        destination: int,
        kind: int,
        packet: SimpleNamespace,
        queues: tuple[int, ...],
    ) -> int | None:
        """Return the uplink under the routes of a state, None where there is no path."""
        routes = self.network.routes[state][1]  # type: ignore[attr-defined]
        first = TREE.first_port(self.switch) + TREE.downlinks(self.switch)
        self.world.links.occupancy[first : first + TREE.edge_uplinks] = queues
        group = int(routes.groups[self.world.switches[self.switch].row + destination])
        if group == NONE:
            return None
        with np.errstate(
            over="ignore"
        ):  # kernels wrap at 64 bits without a word, and so do these numpy integers
            return int(lb.uplink(self.world, routes, self.switch, group, packet, kind, 0))


def port(bench: Rig, frame: bytes, queues: tuple[int, ...]) -> int | None:
    """Return the program's port while so many bytes wait at the uplinks."""
    assert bench.switch.pipeline is not None
    first = TREE.uplink_port(bench.index, 0)
    bench.switch.pipeline.registers[0][first : first + TREE.edge_uplinks] = queues
    chosen_port = bench.offer(frame)
    bench.waiting.clear()
    return chosen_port


@pytest.mark.parametrize("switch", [0, TREE.edges])
@pytest.mark.parametrize(("slug", "rr_pointer"), CASES)
@given(before=packets, after=packets, failed=failures, seed=st.integers(0, 2**40))
@settings(max_examples=4, deadline=None)
def test_program_and_simulator_choose_the_same_port(
    slug: str,
    rr_pointer: str,
    switch: int,
    before: list[Packet],
    after: list[Packet],
    failed: frozenset[int],
    seed: int,
) -> None:
    if slug not in NO_DRAWS:
        need_our_draws()
    events = [{"link": link_name(TREE, link), "down_ns": 1000} for link in sorted(failed)]
    chosen = scenario(
        slug,
        seed=seed,
        load_balancer={"rr_pointer": rr_pointer},
        collective={"message_bytes": 4096},
        failures={"events": events},
    )
    controller, bench = controller_of(chosen), rig(chosen, switch)
    controller.start()
    simulated = Simulated(build(chosen), switch)
    for state, sent in enumerate((before, after)):
        for host, is_ack, label, psn, queues in sent:
            frame = (ack if is_ack else data)(TREE, 0, host, label, psn)
            destination = host // 2 if switch < TREE.edges else host // 4
            digest = crc32(frame[26:34] + frame[23:24] + frame[34:38])
            packet = SimpleNamespace(hash=digest, psn=psn, label=label)
            uplink = simulated.uplink(state, destination, int(is_ack), packet, queues)
            assert port(bench, frame, queues) == (
                None if uplink is None else TREE.uplink_port(switch, uplink)
            )
        bench.apply(controller.on_event(0, LinkChange(down=failed)))
