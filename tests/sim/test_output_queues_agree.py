"""The project's two output queues, the switch's and the simulator's, fed with the same offers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emulation.softswitch.queue import OutputQueue
from fattree.experiment import Fabric, Scenario
from sim.arrays.network import build
from sim.kernels.queues import offer, settle
from sim.kernels.state import ACK, DATA

offers = st.lists(st.tuples(st.integers(0, 100_000), st.booleans()), min_size=1, max_size=120)


@given(
    offers=offers,
    capacity=st.sampled_from([0, 4_158, 9_000, 30_000]),
    rate_gbps=st.sampled_from([800, 333, 100]),
)
def test_both_drop_delay_and_fill_alike(
    offers: list[tuple[int, bool]], capacity: int, rate_gbps: int
) -> None:
    scenario = Scenario(fabric=Fabric(k=2, queue_bytes=capacity, rate_gbps=rate_gbps))
    world, now_ps = build(scenario).world, 0
    link, ledger, packets = world.links[0], world.ledgers[0], world.pool.packets
    queue = OutputQueue(scenario.rate_bps, capacity or None, gap_bytes=scenario.packets.gap_bytes)
    for wait_ps, is_ack in offers:
        now_ps += wait_ps
        size = scenario.ack_bytes if is_ack else scenario.data_bytes
        before, slot = ledger.dropped, link.tail
        packet = np.zeros(1, dtype=packets.dtype).view(np.recarray)[0]
        packet.status = ACK if is_ack else DATA
        offer(world, 0, 0, packet, now_ps)
        departure_ps = queue.offer(now_ps, size)
        assert (ledger.dropped > before) == (departure_ps is None)
        assert departure_ps is None or packets[slot].time_ps == departure_ps + scenario.latency_ps
        settle(world.pool, link, world.constants, 0, now_ps, world.counters)
        assert link.occupancy == queue.occupancy_bytes(now_ps)
