"""The lists of packets on links, as switches read them: in order of arrival."""

from collections.abc import Iterator

import pytest

from fattree.experiment.failures import Storm
from fattree.experiment.model import (
    Collective,
    Fabric,
    Failures,
    Packets,
    Scenario,
    Transport,
)
from sim.arrays.network import build
from sim.kernels.lists import following
from sim.kernels.plain import Form
from sim.kernels.state import World
from sim.kernels.windows import start_flows
from sim.runs.engine import _advancing, prepare

HOSTS = ("h0_0_0", "h0_1_0", "h1_0_1", "h2_0_0", "h3_1_1")
# A pause that lasts just longer than the watchdog's patience of 2 us.
STORM_NS = 2_050.0


def arrivals(world: World, port: int) -> Iterator[int]:
    """Yield the times at which the packets that have left a port arrive at the far end."""
    link = world.links[port]
    slot = int(link.taken)
    while slot != int(link.cursor):
        yield int(world.pool.packets[slot].time_ps)
        slot = int(following(world.pool, slot))


# The longest packets are still being sent when the watchdog's patience ends.
@pytest.mark.parametrize(("payload_bytes", "first_ns"), [(16_384, 5_000.0), (65_000, 40_000.0)])
def test_packets_behind_a_watchdogs_drops_arrive_in_order(
    payload_bytes: int, first_ns: float
) -> None:
    # The port opens just after its packets were dropped, and a short ACK
    # leaves at once: it has to arrive behind the dropped packets, or the next switch
    # is late with it.
    begins_ns = [first_ns + 3_000 * i for i in range(len(HOSTS))]
    storms = tuple(
        Storm(host=host, at_ns=at_ns, until_ns=at_ns + STORM_NS)
        for host, at_ns in zip(HOSTS, begins_ns, strict=True)
    )
    scenario = Scenario(
        policy="flow",
        fabric=Fabric(
            k=4,
            rate_gbps=100.0,
            latency_ns=83.56,
            flow_control="pfc",
            queue_bytes=30 * payload_bytes,
            headroom_bytes=8 * payload_bytes,
            pause_watchdog_us=2.0,
            pause_watchdog="drop",
        ),
        packets=Packets(payload_bytes=payload_bytes),
        collective=Collective(matrix="all_to_all", message_bytes=8 * payload_bytes),
        transport=Transport(recovery="go_back_n"),
        failures=Failures(storms=storms),
        seed=4,
    )
    prepare(Form.PAUSING)
    network = build(scenario)
    world = network.world
    start_flows(world, network.flows.start_ps)
    with _advancing(network, threads=1) as leg:
        for window in range(1, 901):
            leg(world, network.routes[0].routes, window * int(world.constants.window_ps))
            for port in range(world.constants.ports):
                times = list(arrivals(world, port))
                assert times == sorted(times)

    assert world.ledgers.dropped.sum() > 0
