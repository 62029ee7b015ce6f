"""Packets' bytes: every block belongs to one slot or to a thread's free ones, and none is lost."""

import numpy as np
import pytest

from emulation.virtual.simulated import SimulatedFabric, program_of
from fattree.experiment.model import BUILT_IN, Collective, Fabric, Scenario, Transport
from sim.kernels.blocks import PLACE_MASK

TIGHT = Fabric(k=4, queue_bytes=10_000)
SMALL = Collective(message_bytes=48 * 4096)
RUNS = {
    "no drop": Scenario(program=BUILT_IN, fabric=Fabric(k=4), collective=SMALL),
    "drops": Scenario(policy="host_pkt", program=BUILT_IN, fabric=TIGHT, collective=SMALL),
    "few ACKs": Scenario(
        program=BUILT_IN,
        fabric=Fabric(k=4),
        collective=SMALL,
        transport=Transport(packets_per_ack=4),
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", RUNS)
def test_blocks_are_neither_shared_nor_lost(name: str, threads: int) -> None:
    fabric = SimulatedFabric(RUNS[name], program_of(RUNS[name]), threads)
    result = fabric.run()
    run = fabric.timed.packets

    held = run.world.pool.packets["held"] & PLACE_MASK
    free = [desk.free[1 : 1 + desk.free[0]] & PLACE_MASK for desk in run.desks]
    blocks = np.concatenate([held[held > 0], *free])

    assert result.ports.dropped.sum() > 0 or name != "drops"
    assert sorted(blocks.tolist()) == list(range(1, int(run.frames.given[0]) + 1))
