"""Snapshots from readings: loads over a window, queues in packets, phases, and changes of links."""

from dataclasses import replace

import numpy as np
import pytest

from controller.convergence import Convergence
from controller.fabric_controller import LinkChange
from emulation.live.model import (
    Header,
    Meter,
    Observer,
    Reading,
)
from emulation.outcomes.changes import RECENT, changes_of
from emulation.outcomes.reading import FlowReading, PortReading
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.shape.topology import SWITCH_LAYERS, FatTree
from hostagent.transports.state import NEVER

PAIRS = Scenario(
    fabric=Fabric(k=4),
    collective=Collective(matrix="pairs", pairs=((0, 15), (15, 0)), message_bytes=10 * 4096),
)
RING = Scenario(
    fabric=Fabric(k=4), collective=Collective(matrix="ring", message_bytes=64 * 4096, steps=3)
)
HEADER = Header("x", "virtual", "ofan", "Ofan", 1, FatTree(4), "running")
SHAPE = (PAIRS.tree.switches, PAIRS.tree.k + 1)
US = 10**6


def counts(**places: dict[tuple[int, int], int]) -> PortReading:
    """Return port counters that are 0 but at the named (switch, port)."""
    arrays = {
        name: np.zeros(SHAPE, dtype=np.int64)
        for name in ("carried", "queued", "longest", "dropped", "lost_to_failure")
    }
    for name, values in places.items():
        for port, value in values.items():
            arrays[name][port] = value
    return PortReading(**arrays)


def flows(*rows: tuple[int, int, int]) -> FlowReading:
    return FlowReading(*np.array(rows, dtype=np.int64).T)


def reading(
    time_ps: int, ports: PortReading | None = None, failed: frozenset[int] = frozenset()
) -> Reading:
    return Reading(time_ps, ports or counts(), flows((0, 0, NEVER), (0, 0, NEVER)), failed)


def test_a_meter_tells_the_rate_of_its_window_only() -> None:
    meter = Meter(window_ps=100)
    totals = [(0, 0), (100, 1000), (200, 1000), (300, 1500)]
    rates = [float(meter.bytes_per_ps(time, np.array([total]))[0]) for time, total in totals]
    assert rates == [0, 10, 0, 5]


@pytest.mark.parametrize(("time_ps", "total"), [(50, 2000), (200, 10)])
def test_a_meter_begins_again_when_time_or_counters_go_back(time_ps: int, total: int) -> None:
    meter = Meter(window_ps=100)
    for time, carried in ((0, 0), (100, 1000)):
        meter.bytes_per_ps(time, np.array([carried]))
    assert meter.bytes_per_ps(time_ps, np.array([total])).tolist() == [0]


def test_a_links_two_ways_are_told_apart() -> None:
    tree, link = PAIRS.tree, 17
    lower, upper = tree.link_ends(link)
    observer, full = Observer(PAIRS, US), US // PAIRS.tx_ps(1)
    observer.snapshot(HEADER, reading(0))
    size = PAIRS.data_bytes
    ports = counts(
        carried={lower: full, upper: full // 4},
        queued={lower: 3 * size},
        lost_to_failure={upper: 7, lower: 1},
    )
    view = observer.snapshot(HEADER, reading(US, ports, frozenset({link}))).links[link]
    assert (view.name, view.is_up, view.lost_to_failure) == ("agg0_0-core0_1", False, 8)
    assert view.load_up == pytest.approx(1)
    assert view.load_down == pytest.approx(0.25)
    assert (view.queue_up, view.queue_down) == (3, 0)


def test_a_load_never_exceeds_the_link() -> None:
    observer = Observer(PAIRS, US)
    observer.snapshot(HEADER, reading(0))
    snapshot = observer.snapshot(HEADER, reading(1, counts(carried={(0, 3): 10**9})))
    assert snapshot.links[0].load_up == 1


def test_tiers_show_the_longest_queue_and_the_mean_load() -> None:
    observer, size = Observer(PAIRS, US), PAIRS.data_bytes
    observer.snapshot(HEADER, reading(0))
    ports = counts(
        carried={(0, 3): US // PAIRS.tx_ps(1)},
        queued={(1, 3): size},
        longest={(1, 4): 9 * size},
        dropped={(0, 4): 5},
    )
    tiers = {tier.layer: tier for tier in observer.snapshot(HEADER, reading(US, ports)).tiers}
    assert tuple(tiers) == SWITCH_LAYERS
    uplinks = tiers["E>A"]
    assert (uplinks.queue, uplinks.longest_queue, uplinks.dropped) == (1, 9, 5)
    assert (uplinks.load, uplinks.highest_load) == pytest.approx((1 / 16, 1), abs=1e-3)
    assert tiers["A>C"].longest_queue == 0


def test_there_is_a_completion_time_when_all_flows_are_complete() -> None:
    observer = Observer(PAIRS, US)
    states = [
        ((4, 0, NEVER), (9, 0, NEVER)),
        ((10, 0, 5 * US), (9, 0, NEVER)),
        ((10, 0, 5 * US), (12, 0, 7 * US)),
    ]
    seen = [
        observer.snapshot(HEADER, replace(reading(number), flows=flows(*state)))
        for number, state in enumerate(states)
    ]
    assert [snapshot.cct_ps for snapshot in seen] == [None, None, 7 * US]
    assert [snapshot.phases[0].cct_ps for snapshot in seen] == [None, None, 7 * US]
    assert [snapshot.progress for snapshot in seen] == [0.65, 0.95, 1]
    assert [snapshot.phases[0].done for snapshot in seen] == [0, 1, 2]
    assert seen[2].phases[0].is_complete


def test_a_ring_has_a_phase_per_step() -> None:
    hosts = RING.tree.hosts
    rows = [(99, 0, 2 * US)] * hosts + [(0, 2 * US, NEVER)] * 2 * hosts
    observer = Observer(RING, US)
    snapshot = observer.snapshot(HEADER, Reading(0, counts(), flows(*rows)))
    assert [(phase.flows, phase.done, phase.cct_ps) for phase in snapshot.phases] == [
        (16, 16, 2 * US),
        (16, 0, None),
        (16, 0, None),
    ]


def test_a_change_of_links_is_told_from_failure_to_installation() -> None:
    seen = Convergence(
        LinkChange(down=frozenset({16, 0})),
        "announced",
        frozenset({16, 0}),
        detected_ps=20,
        failed_ps=10,
    )
    (before,) = changes_of(FatTree(4), [seen])
    seen.planned(25, [])
    seen.installed(90)
    (after,) = changes_of(FatTree(4), [seen])
    assert before.links == ("edge0_0-agg0_0", "agg0_0-core0_0")
    assert (before.at_ps, before.detected_ps, before.planned_ps, before.installed_ps) == (
        10,
        20,
        None,
        None,
    )
    assert (after.planned_ps, after.installed_ps, after.up) == (25, 90, False)


def test_a_change_whose_instant_is_unknown_begins_with_its_detection() -> None:
    seen = Convergence(LinkChange(up=frozenset({1})), "probe", frozenset(), detected_ps=20)
    assert [(change.at_ps, change.up) for change in changes_of(FatTree(4), [seen])] == [(20, True)]


def test_a_link_that_flaps_for_days_fills_no_snapshot() -> None:
    flaps = [
        Convergence(LinkChange(up=frozenset({1})), "announced", frozenset(), detected_ps=time_ps)
        for time_ps in range(10 * RECENT)
    ]
    shown = changes_of(FatTree(4), flaps)
    assert [change.at_ps for change in shown] == list(range(9 * RECENT, 10 * RECENT))
