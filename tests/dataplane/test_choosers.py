"""Every program against the plain rule of its load balancer: same packets, plans and ports."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.fabric_controller import FabricController, LinkChange
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from tests.dataplane.reference import Reference
from tests.dataplane.rig import Rig, ack, controller_of, data, rig, scenario

SCHEMES = list(
    {(p.chooser, p.weighted): p.slug for p in POLICIES.values() if not p.outer_bytes}.values()
)
# Simple RR's option concerns no other scheme.
CASES = [*((slug, "per_class") for slug in SCHEMES), ("simple_rr", "shared")]
DATA_LENGTHS = (1000, 4158, 8000, 41_000, 90_000)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A packet for a host; `leave` of those that wait go before it."""

    host: int
    is_ack: bool
    label: int
    psn: int
    length: int
    leave: int


@dataclass(slots=True)
class Bench:
    """A switch, its controller and the plain rule side by side."""

    rig: Rig
    controller: FabricController
    reference: Reference

    @classmethod
    def of(cls, chosen: Scenario, switch: int) -> "Bench":
        controller = controller_of(chosen)
        controller.start()
        return cls(
            rig(chosen, switch), controller, Reference(chosen, switch, controller.forwarding())
        )

    def replan(self, failed: frozenset[int]) -> None:
        now = self.controller.failed
        self.rig.apply(self.controller.on_event(0, LinkChange(down=failed - now, up=now - failed)))
        self.reference.state = self.controller.forwarding()

    def queues(self) -> list[int]:
        first = self.rig.tree.uplink_port(self.rig.index, 0)
        waiting = [0] * self.rig.tree.uplinks(self.rig.index)
        for pending in self.rig.waiting:
            if pending.egress_port >= first:
                waiting[pending.egress_port - first] += pending.length
        return waiting

    def ports(self, arrival: Arrival) -> tuple[int | None, int | None]:
        """Return the program's and the rule's port for a packet."""
        tree = self.rig.tree
        source = 0 if arrival.host else 1
        frame = (ack if arrival.is_ack else data)(
            tree, source, arrival.host, arrival.label, arrival.psn
        )
        is_edge = self.rig.index < tree.edges
        destination = (tree.edge_of_host if is_edge else tree.pod_of_host)(arrival.host)
        five_tuple = frame[26:34] + frame[23:24] + frame[34:38]
        uplink = self.reference.uplink(
            destination, int(arrival.is_ack), five_tuple, arrival.psn, self.queues()
        )
        port = self.rig.offer(frame, length=64 if arrival.is_ack else arrival.length)
        return port, None if uplink is None else tree.uplink_port(self.rig.index, uplink)


def arrivals(hosts: Sequence[int]) -> st.SearchStrategy[Arrival]:
    """Return packets for some hosts."""
    lengths = st.sampled_from(DATA_LENGTHS)
    return st.builds(
        Arrival,
        st.sampled_from(hosts),
        st.booleans(),
        st.integers(0, 2**16 - 1),
        st.integers(0, 2**24 - 1),
        lengths,
        st.integers(0, 3),
    )


def northbound(chosen: Scenario, switch: int) -> list[int]:
    """Return the hosts that a switch reaches through its uplinks."""
    tree = chosen.tree
    if switch < tree.edges:
        return [host for host in range(tree.hosts) if tree.edge_of_host(host) != switch]
    pod, _ = tree.position(switch)
    return [host for host in range(tree.hosts) if tree.pod_of_host(host) != pod]


def run(chosen: Scenario, switch: int, phases: list[tuple[frozenset[int], list[Arrival]]]) -> None:
    """Replay phases of traffic, each under its failed links."""
    bench = Bench.of(chosen, switch)
    for failed, packets in phases:
        bench.replan(failed)
        for packet in packets:
            for _ in range(min(packet.leave, len(bench.rig.waiting))):
                bench.rig.leave()
            port, expected = bench.ports(packet)
            assert port == expected


@pytest.mark.parametrize("switch", [0, 8])
@pytest.mark.parametrize(("slug", "rr_pointer"), CASES)
@given(drawn=st.data())
@settings(max_examples=3, deadline=None)
def test_program_and_rule_choose_the_same_port(
    slug: str, rr_pointer: str, switch: int, drawn: st.DataObject
) -> None:
    chosen = scenario(
        slug,
        seed=drawn.draw(st.integers(0, 2**40)),
        load_balancer={"rr_pointer": rr_pointer},
    )
    packets = st.lists(arrivals(northbound(chosen, switch)), min_size=20, max_size=60)
    failed = st.frozensets(st.integers(0, chosen.tree.links - 1), max_size=3)
    run(chosen, switch, drawn.draw(st.lists(st.tuples(failed, packets), min_size=1, max_size=3)))


@pytest.mark.slow
@pytest.mark.parametrize("switch", [0, 5, 32, 63])
@pytest.mark.parametrize(("slug", "rr_pointer"), CASES)
@given(drawn=st.data())
@settings(max_examples=10, deadline=None)
def test_program_and_rule_choose_the_same_port_at_k_8(
    slug: str, rr_pointer: str, switch: int, drawn: st.DataObject
) -> None:
    chosen = scenario(
        slug,
        k=8,
        seed=drawn.draw(st.integers(0, 2**40)),
        load_balancer={"bins_percent": (1, 2.5, 7), "rr_pointer": rr_pointer},
    )
    packets = st.lists(arrivals(northbound(chosen, switch)), min_size=100, max_size=300)
    failed = st.frozensets(st.integers(0, chosen.tree.links - 1), max_size=12)
    run(chosen, switch, drawn.draw(st.lists(st.tuples(failed, packets), min_size=1, max_size=3)))
