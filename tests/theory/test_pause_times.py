"""Quanta, renewals, storms and watchdogs in numbers worked out by hand, to the picosecond."""

from typing import Any

import numpy as np
import pytest

from emulation.errors import FailedRunError
from emulation.outcomes.outcome import Outcome
from emulation.virtual.events import HEED
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import headroom_bytes, lasting, room
from fattree.routes.buffers import refuse_unable_pauses, slow_ports
from fattree.shape.topology import Level
from ofan_p4.softswitch.ports.pausable import Buffer, PausableQueue
from sim.errors import UnfinishedError
from sim.runs.engine import run
from tests.parity.engines import outcome_of
from tests.python_network.fabric import PythonFabric
from tests.python_network.shared import SharedBuffer, SharedMemory

PACKET = 4096 + 62
# At 800 Gbit/s: 65,535 quanta of 512 bits, and 32,767 of them; a packet, with its gap, a link.
LASTS, AGAIN = 41_942_400, 20_970_880
T, SLOT, LATENCY = 41_580, 41_780, 500_000
NS = 1_000


def leaf(failures: dict[str, Any], packets: int = 100, **fabric: Any) -> Scenario:
    """Return two hosts of one edge that begin together and send to a third one there."""
    counts = {"edges_per_pod": 1, "hosts_per_edge": 3, "aggs_per_pod": 1}
    return Scenario.model_validate(
        {
            "fabric": counts | {"flow_control": "pfc"} | fabric,
            "collective": {
                "matrix": "pairs",
                "message_bytes": packets * 4096,
                "pairs": ((0, 2), (1, 2)),
            },
            "transport": {
                "recovery": "go_back_n",
                "timer_floor_rtt": 10_000,
                "random_phases": False,
            },
            "failures": failures,
        }
    )


def storm(at_ps: int, until_ps: int | None, host: str = "h0_0_2") -> dict[str, Any]:
    end = {} if until_ps is None else {"until_ns": until_ps / NS}
    return {"storms": [{"host": host, "at_ns": at_ps / NS} | end]}


def both(chosen: Scenario) -> Outcome:
    """Run programs and kernels, which must agree; return the outcome of programs."""
    outcome = outcome_of(chosen)
    result = run(chosen)
    assert [flow.done_ps for flow in outcome.flows] == result.done_ps.tolist()
    assert [port.paused_ps for port in outcome.ports] == result.ports.paused_ps.tolist()
    assert [port.dropped for port in outcome.ports] == result.ports.dropped.tolist()
    assert [port.pauses for port in outcome.ports] == result.ports.pauses.tolist()
    assert outcome.host_paused_ps == result.host_paused_ps
    return outcome


def test_a_pause_has_the_longest_time_of_the_standard() -> None:
    assert tuple(lasting(leaf({}), Level.HOST)) == (LASTS, AGAIN)
    assert LASTS == 65_535 * 512 * 10**12 // (800 * 10**9)
    assert AGAIN == 32_767 * 512 * 10**12 // (800 * 10**9)


def test_under_pauses_receivers_have_no_say_unless_asked() -> None:
    assert not leaf({}).tells_shares
    told = leaf({}).model_dump(exclude_unset=True)
    told["transport"]["receiver_share"] = True
    assert Scenario.model_validate(told).tells_shares
    del told["transport"]["receiver_share"], told["fabric"]["flow_control"]
    assert Scenario.model_validate(told).tells_shares


# The edge's port takes the first packets when both have come, and then one each slot.
FIRST = T + LATENCY


@pytest.mark.parametrize(("off", "begun"), [(-1, 5), (0, 6), (1, 6)])
def test_what_starts_at_the_instant_of_a_pause_has_begun(off: int, begun: int) -> None:
    at_ps = FIRST + 5 * SLOT + off
    until_ps = 10 * 10**6
    outcome = both(leaf(storm(at_ps, until_ps)))
    [port] = [port for port in outcome.ports if port.paused_ps]
    assert port.paused_ps == until_ps - at_ps
    # So many packets have begun before the pause, the others from its end on; the last ACK's way.
    remaining = 200 - begun
    ack = 640 + LATENCY
    assert outcome.end_ps == until_ps + (remaining - 1) * SLOT + T + LATENCY + 2 * ack


def test_a_pause_is_renewed_while_its_cause_lasts_and_ends_once() -> None:
    # Both senders are held by the edge until the storm has ended: longer than two pauses last.
    until_ps = 100 * 10**6
    assert until_ps > 2 * LASTS
    outcome = both(leaf(storm(0, until_ps), packets=30, queue_bytes=150_000))
    assert outcome.accounts.dropped == 0
    # One pause each, however often it is renewed.
    assert sorted(port.pauses for port in outcome.ports)[-2:] == [1, 1]
    assert outcome.host_paused_ps > 2 * (until_ps - 5 * 10**6)


def chain(failures: dict[str, Any], **fabric: Any) -> Scenario:
    """Return a host that sends to another one two edges away, over one switch."""
    counts = {"edges_per_pod": 2, "hosts_per_edge": 1, "aggs_per_pod": 1}
    return Scenario.model_validate(
        {
            "fabric": counts | {"flow_control": "pfc", "queue_bytes": 150_000} | fabric,
            "collective": {"matrix": "pairs", "message_bytes": 200 * 4096, "pairs": ((0, 1),)},
            "transport": {"recovery": "go_back_n", "timer_floor_rtt": 10_000},
            "failures": {"convergence_rtt": float("inf")} | failures,
        }
    )


def test_a_release_that_is_lost_holds_a_port_until_its_pause_runs_out() -> None:
    # The receiver's storm fills the far edge, which pauses the spine. The link between them is dead
    # while the release is sent, so that the spine goes on when the last renewal has run out.
    release_ps = 50 * 10**6
    down = {"link": "edge0_1-agg0_0", "down_ns": 49_000, "up_ns": 60_000}
    failures = storm(5 * 10**6, release_ps, host="h0_1_0") | {"events": [down]}
    chosen = chain(failures)
    fabric = PythonFabric(chosen)
    heard: list[tuple[int, bool]] = []
    network = fabric.network
    heed = network._handlers[HEED]

    def listen(time_ps: int, node: int, number: int, frame: Any) -> None:
        is_down = frame.port.wire.is_down(frame.passage.start_ps)
        if node == network.tree.first_agg and not is_down:
            heard.append((time_ps, frame.is_pause))
        heed(time_ps, node, number, frame)

    network._handlers[HEED] = listen
    outcome = fabric.run()
    pauses = [time_ps for time_ps, is_pause in heard if is_pause]
    # Sent, and renewed twice before the link died.
    assert pauses == [pauses[0], pauses[0] + AGAIN, pauses[0] + 2 * AGAIN]
    spine = next(port for port in outcome.ports if port.switch == 2 and port.port == 2)
    assert spine.paused_ps == 2 * AGAIN + LASTS
    assert both(chosen).accounts.dropped == 0
    # Without the dead link the release ends the pause.
    spine = next(
        port
        for port in both(chain(storm(5 * 10**6, release_ps, host="h0_1_0"))).ports
        if port.switch == 2 and port.port == 2
    )
    assert spine.paused_ps < 2 * AGAIN + 10**7


PATIENCE = 20 * 10**6


@pytest.mark.parametrize(("lasts_ps", "trips"), [(-1, False), (0, False), (1, True)])
@pytest.mark.parametrize("action", ["drop", "ignore"])
def test_a_watchdog_acts_on_pauses_longer_than_its_patience(
    lasts_ps: int, trips: bool, action: str
) -> None:
    at_ps = 2 * 10**6
    chosen = leaf(
        storm(at_ps, at_ps + PATIENCE + lasts_ps),
        queue_bytes=150_000,
        pause_watchdog_us=PATIENCE / 10**6,
        pause_watchdog=action,
    )
    outcome = both(chosen)
    assert (outcome.accounts.dropped > 0) is (trips and action == "drop")
    assert outcome.accounts.unaccounted == 0


def test_a_port_that_ignores_a_storm_goes_on_after_its_patience() -> None:
    at_ps = FIRST + 5 * SLOT
    chosen = leaf(storm(at_ps, 10**9), pause_watchdog_us=PATIENCE / 10**6, pause_watchdog="ignore")
    ack = 640 + LATENCY
    end_ps = both(chosen).end_ps
    assert end_ps == at_ps + PATIENCE + (200 - 6 - 1) * SLOT + T + LATENCY + 2 * ack


ENDLESS = leaf(storm(2 * 10**6, None), queue_bytes=150_000)
HELD = r"h0_0_2 has paused its link: edge0_0 port 3 was held for"


def test_a_storm_without_an_end_ends_the_run_and_is_named() -> None:
    with pytest.raises(UnfinishedError, match=HELD):
        run(ENDLESS)


@pytest.mark.slow
def test_a_storm_without_an_end_ends_the_readable_network_too() -> None:
    with pytest.raises(FailedRunError, match=HELD):
        PythonFabric(ENDLESS).run()


@pytest.mark.parametrize(("off", "is_paused"), [(-1, False), (0, False), (1, True)])
def test_a_buffer_pauses_above_its_threshold_and_resumes_at_its_bound(
    off: int, is_paused: bool
) -> None:
    buffer = Buffer(most=3000, pause_above=1000, resume_at=400)
    assert buffer.take(1000 + off, 1) is is_paused
    buffer = Buffer(most=3000, pause_above=1000, resume_at=400)
    buffer.take(400 + off, 1)
    assert buffer.take(2000, 2)
    assert buffer.give_back(2000, 2) is (off <= 0)
    assert buffer.held == 400 + off, "it need not be empty"
    assert Buffer(3000, 1000, 400).has_room(3000 + off) is (off <= 0)


@pytest.mark.parametrize("off", [-1, 0, 1])
@pytest.mark.parametrize("alpha", [0.5, 1, 4])
def test_shared_memory_pauses_above_alpha_times_what_is_free(alpha: float, off: int) -> None:
    # A packet is below the headroom while own + size <= alpha * free, and own + size <= own + free.
    size = 9000
    memory = SharedMemory(size, round(alpha * 2**16))
    limit = min(int(alpha * size), size)
    buffer = SharedBuffer(
        capacity=size + 500, pause_above=size, resume_at=size - 200, memory=memory
    )
    is_paused = buffer.take(limit + off, 1)
    assert (buffer.over > 0) is (off > 0)
    # Of an empty memory a packet leaves less free than it has taken itself.
    taken = 0 if off > 0 else limit + off
    assert is_paused is (off > 0 or taken > min(alpha * (size - taken), size))


@pytest.mark.parametrize(("off", "fits"), [(-1, True), (0, True), (1, False)])
@pytest.mark.parametrize("alpha", [1, 4])
def test_the_headroom_of_shared_memory_to_the_byte(alpha: int, off: int, fits: bool) -> None:
    memory = SharedMemory(9000, alpha << 16)
    buffer = SharedBuffer(capacity=9500, pause_above=9000, resume_at=8800, memory=memory)
    neighbour = SharedBuffer(capacity=9500, pause_above=9000, resume_at=8800, memory=memory)
    neighbour.take(9000 if alpha > 1 else 4500, 1)
    while not buffer.is_pausing:
        buffer.take(500, 1)

    taken = buffer.over
    assert buffer.has_room(500 - taken + off) is fits


def test_a_buffer_of_shared_memory_need_not_be_empty_to_go_on() -> None:
    memory = SharedMemory(10_000, 1 << 16)
    buffer = SharedBuffer(capacity=10_500, pause_above=10_000, resume_at=9_000, memory=memory)
    for _ in range(6):
        buffer.take(1_000, 1)
    assert buffer.is_pausing and buffer.over == 1_000
    assert not buffer.give_back(1_000, 1), "the headroom is empty now, and no more"
    # held + 1,000 <= free: 4,000 + 1,000 <= 6,000, but not 5,000 + 1,000 <= 5,000.
    assert buffer.give_back(1_000, 1) and buffer.held == 4_000


def test_headroom_counts_the_longest_packet_and_the_slow_way_back() -> None:
    chosen = leaf({})
    assert headroom_bytes(chosen, Level.HOST) == 100_000 + 4_178 + 168 + 2 * PACKET
    long = chosen.model_copy(
        update={"packets": chosen.packets.model_copy(update={"ack_bytes": 5_000})}
    )
    assert headroom_bytes(long, Level.HOST) == 100_000 + 5_020 + 168 + 2 * 5_000
    # A pause that waits ten times as long for a packet and a frame, and is sent so.
    slow = headroom_bytes(chosen, Level.HOST, goes=0.1)
    assert slow == 100_000 + 10 * (4_178 + 168) + 2 * PACKET
    assert headroom_bytes(chosen, Level.HOST, comes=0.1, goes=0.1) == 10_000 + 4_346 + 2 * PACKET


def test_a_link_that_is_slow_one_way_has_more_headroom_at_one_end() -> None:
    degraded = [{"link": "edge0_0-agg0_0", "rate": 0.1, "direction": "up"}]
    chosen = chain({"degraded": degraded}, queue_bytes=200_000)
    assert slow_ports(chosen) == {(0, 2): [(1.0, 0.1)], (2, 1): [(0.1, 1.0)]}
    plain = room(chosen, Level.EDGE_AGG)
    more = room(chosen, Level.EDGE_AGG, shares=[(1.0, 0.1)])
    assert plain.pause_above - more.pause_above == 9 * (4_178 + 168)


def test_rates_at_which_a_renewal_would_come_too_late_are_refused() -> None:
    # Half a pause is 2,097,152 bytes or so of the full rate; at 0.2 % of it, 4,178 take as long.
    def refused(rate: float) -> bool:
        degraded = [{"link": "edge0_0-agg0_0", "rate": rate}]
        chosen = chain({"degraded": degraded}, queue_bytes=800_000)
        try:
            refuse_unable_pauses(chosen)
        except ExperimentError as error:
            assert "holds a link for" in str(error)
            return True

        return False

    assert refused(0.002) and not refused(0.0022)


def test_a_queue_that_changes_its_rate_while_it_is_paused() -> None:
    queue = PausableQueue(rate_bps=8 * 10**9)
    first, second = queue.offer(0, 1000), queue.offer(0, 1000)
    assert (first.departure_ps, second.departure_ps) == (10**6, 2 * 10**6)
    queue.pause(500_000)
    queue.set_rate_bps(600_000, 4 * 10**9)
    # A packet that has begun keeps its rate.
    assert first.departure_ps == 10**6
    queue.resume(700_000)
    assert (second.start_ps, second.departure_ps) == (10**6, 3 * 10**6)


def test_pauses_of_two_hosts_are_counted_until_the_end() -> None:
    result = run(leaf(storm(0, 60 * 10**6), queue_bytes=150_000))
    assert result.host_paused_ps > 2 * 50 * 10**6
    assert np.count_nonzero(result.ports.pauses) == 2
