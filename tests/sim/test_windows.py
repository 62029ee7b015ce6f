"""Window after window: the chunks that a window may take from the pool, and skips of the clock."""

from types import SimpleNamespace

import numpy as np
import pytest

from fattree.experiment.model import Collective, Fabric, Scenario
from hostagent.transports.state import NEVER
from sim.arrays.network import Network, build
from sim.kernels.records import CHUNK, Records
from sim.kernels.state import CLOCK, LIVE, MISDELIVERED, SPARE, UNSERVED, World
from sim.kernels.windows import REACHED, STUCK, chunks_needed, through_windows
from sim.runs.engine import advanced

SLOW_GBPS = 10


def crowded(rate_gbps: int) -> Network:
    """Return a network in which every host sends at 0, and every list needs a chunk at once."""
    scenario = Scenario(
        policy="rsq",
        fabric=Fabric(k=4, rate_gbps=rate_gbps),
        collective=Collective(message_bytes=20 * 4096),
    )
    network = build(scenario)
    network.world.flows.table.phase_ps[:] = 0
    for lists, ends in ((network.world.links, ("taken", "cursor", "tail")), hosts(network.world)):
        for end in ends:
            lists[end] |= CHUNK - 1
    return network


def hosts(world: World) -> tuple[Records, tuple[str, ...]]:
    return world.hosts, ("taken", "tail")


@pytest.mark.parametrize("rate_gbps", [SLOW_GBPS, 100, 800])
def test_a_window_takes_no_more_chunks_than_it_asks_for(rate_gbps: int) -> None:
    network = crowded(rate_gbps)
    constants = network.world.constants
    needed, spare = int(chunks_needed(network.world)), int(network.world.counters[SPARE])
    world = advanced(network, constants.window_ps)
    taken = spare - int(world.counters[SPARE])
    assert world.counters[CLOCK] == constants.window_ps
    assert constants.hosts <= taken <= needed
    if rate_gbps == SLOW_GBPS:
        assert world.counters[LIVE] == constants.hosts
        assert needed < 3 * taken


def test_the_clock_skips_to_the_first_event() -> None:
    scenario = Scenario(
        fabric=Fabric(k=2),
        collective=Collective(matrix="pairs", pairs=((0, 1), (1, 0)), message_bytes=1),
    )
    network = build(scenario)
    network.flows.start_ps[:] = 10**9
    world = advanced(network, 10**9 - 1)
    assert world.counters[CLOCK] == 10**9 - 1
    assert np.all(world.flows.senders.sent == 0)


@pytest.mark.parametrize(
    ("next_ps", "ended", "windows", "clock"),
    [(10**9, REACHED, 2, 10**9 + 10), (10**10, REACHED, 1, 10**9 + 10), (NEVER, STUCK, 1, 10)],
)
def test_a_window_in_which_nothing_happens_is_the_last_before_the_next_event(
    next_ps: int, ended: int, windows: int, clock: int
) -> None:
    constants = SimpleNamespace(window_ps=10)
    world = SimpleNamespace(counters=[1] * 64, constants=constants)
    for name in (CLOCK, MISDELIVERED, UNSERVED):
        world.counters[name] = 0

    served: list[int] = []

    def served_hosts(work: tuple[SimpleNamespace], end_ps: int) -> int:
        served.append(end_ps)
        assert len(served) <= windows
        return int(end_ps > next_ps)

    outcome = through_windows(
        (world,),
        10**9 + 10,
        has_room=lambda work: True,
        serve_all_hosts=served_hosts,
        serve_all_switches=lambda work, end_ps: 0,
        next_of_all=lambda work: next_ps,
    )
    assert (outcome, len(served), world.counters[CLOCK]) == (ended, windows, clock)
