"""ACKs that go before data at switches: in all bodies alike, and late by a packet at most."""

from typing import Any

import pytest

import sim
from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario, Transport
from tests import naive
from tests.parity import (
    test_naive_against_sim,
    test_programs_equal_kernels,
    test_virtual_equals_simulator,
)
from tests.parity.drawing import pairs
from tests.python_network.fabric import PythonFabric

# Three receivers, which send as much to their senders: ACKs meet queues of data.
PAIRS = [pair for host in range(3, 16) for pair in ((host, host % 3), (host % 3, host))]
TRANSPORTS: dict[str, dict[str, Any]] = {
    "sack": {"recovery": "sack"},
    "erasure": {"recovery": "erasure"},
    "nscc": {"recovery": "sack", "congestion": "nscc"},
    "few ACKs": {"recovery": "sack", "packets_per_ack": 8},
}
POLICIES = ("ofan", "jsq", "host_dr", "mrc_srv6", "host_pkt_ar")
LEAF = {"edges_per_pod": 1, "hosts_per_edge": 4, "aggs_per_pod": 1}
HORIZON_PS = 10**10


def crowd(policy: str, transport: dict[str, Any], acks_first: bool) -> Scenario:
    return Scenario.model_validate(
        {
            "policy": policy,
            "fabric": {"k": 4, "queue_bytes": 20_000},
            "collective": {"matrix": "pairs", "message_bytes": 40 * 4096, "pairs": PAIRS},
            "transport": {**transport, "trimming": True, "acks_first": acks_first},
        }
    )


@pytest.mark.parametrize(("transport", "policy"), pairs(list(TRANSPORTS), POLICIES))
def test_all_bodies_agree(transport: str, policy: str) -> None:
    chosen = crowd(policy, TRANSPORTS[transport], acks_first=True)
    result = sim.run(chosen)
    network = naive.run(chosen, HORIZON_PS)
    assert test_naive_against_sim.of_sim(result) == test_naive_against_sim.of_naive(network)
    outcome = PythonFabric(chosen).run()
    test_virtual_equals_simulator.assert_same(outcome, result)
    test_programs_equal_kernels.assert_same(simulated.run(chosen), result)
    assert VirtualFabric(chosen).run().digest == outcome.digest
    later = sim.run(crowd(policy, TRANSPORTS[transport], acks_first=False))
    assert result.done_ps.tolist() != later.done_ps.tolist()


def acknowledged(acks_first: bool, senders: int = 2) -> tuple[Scenario, int]:
    """Return when a host has all ACKs of its message, while others fill the queue towards it."""
    chosen = Scenario.model_validate(
        {
            "policy": "flow",
            "fabric": LEAF,
            "collective": {
                "matrix": "pairs",
                "message_bytes": 64 * 4096,
                "pairs": [(0, 1), *((2 + sender, 0) for sender in range(senders))],
            },
            "transport": {
                "recovery": "sack",
                "trimming": True,
                "acks_first": acks_first,
                "receiver_share": False,
            },
        }
    )
    return chosen, int(sim.run(chosen).done_ps[0])


def test_an_ack_waits_for_one_packet_and_not_for_the_queue() -> None:
    chosen, alone_ps = acknowledged(acks_first=True, senders=0)
    _, first_ps = acknowledged(acks_first=True)
    _, later_ps = acknowledged(acks_first=False)
    # The packet that is being sent, and the ACKs that the host's own link carries between data.
    assert 0 < first_ps - alone_ps <= 2 * chosen.slot_ps
    assert later_ps - alone_ps > 30 * chosen.slot_ps


@pytest.mark.parametrize(("acks", "short_bytes", "fits"), [(2, 1, 1), (2, 0, 2), (2, -1, 2)])
def test_a_lane_is_as_long_as_the_queue(acks: int, short_bytes: int, fits: int) -> None:
    """Room for two ACKs, and a byte more or less."""
    chosen = crowd("host_pkt", TRANSPORTS["sack"], acks_first=True)
    sizes = {"payload_bytes": 512, "header_bytes": 62, "ack_bytes": 570}
    of = chosen.replaced(
        packets=sizes,
        fabric={"k": 4, "queue_bytes": acks * 570 - short_bytes},
        collective={"matrix": "pairs", "message_bytes": 32 * 512, "pairs": PAIRS},
    )
    network = naive.run(of, HORIZON_PS)
    assert test_naive_against_sim.of_sim(sim.run(of)) == test_naive_against_sim.of_naive(network)
    longest = max(
        sum(before.departure_ps > ack.enqueued_ps for before in port.hurried[: number + 1])
        for port in network.ports.values()
        for number, ack in enumerate(port.hurried)
    )
    assert longest == fits
    assert sum(port.drops for port in network.ports.values()) > 0


def test_a_program_in_python_lets_acks_go_first() -> None:
    chosen = crowd("ofan", TRANSPORTS["sack"], acks_first=True)
    digests = {
        VirtualFabric(chosen, is_interpreted=python).run().digest for python in (False, True)
    }
    assert len(digests) == 1


def test_without_a_lane_it_is_refused() -> None:
    with pytest.raises(ExperimentError, match=r"acks_first needs transport\.trimming"):
        Scenario(transport=Transport(acks_first=True))
