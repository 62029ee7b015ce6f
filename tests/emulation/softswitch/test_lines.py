"""Copies that wait at a port: for their departure, for another rate, for the interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.daemon.dataplane import MAX_WAITING, Dataplane
from ofan_p4.softswitch.daemon.log import Log
from ofan_p4.softswitch.daemon.ports import Port
from ofan_p4.softswitch.daemon.sockets import open_link_events
from ofan_p4.softswitch.ports.queue import OutputQueue
from tests.emulation.softswitch.pausing import (
    PACKET,
    RATE_BPS,
    End,
    T,
    VirtualClock,
    end_of,
    frame_to,
    program,
)

SLOWER = 100
LATER = 10**12


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def dataplane(clock: VirtualClock) -> Iterator[Dataplane]:
    """A switch that pauses nothing, with rates at its ports."""
    switch = Switch(1, clock, random=lambda low, _high: low, ports=(1, 2), engine="python")
    switch.load(program())
    ports = {
        number: Port(
            number,
            f"p{number}",
            End(),
            (OutputQueue(RATE_BPS, 10**9),),
            is_immediate=False,
        )
        for number in (1, 2)
    }
    made = Dataplane(switch, ports, clock, open_link_events(), Log("off", None))
    yield made
    made.close()


def arrive(dataplane: Dataplane, numbers: range) -> None:
    end_of(dataplane, 1).waiting.extend(frame_to(2, number) for number in numbers)
    dataplane._receive(dataplane.ports[1], len(numbers))


def listen(clock: VirtualClock, dataplane: Dataplane) -> list[tuple[int, bytes]]:
    """Return a list that receives the frames that leave by port 2, with their times."""
    departures: list[tuple[int, bytes]] = []
    end_of(dataplane, 2).deliver = lambda frame: departures.append((clock(), frame))
    return departures


def set_rate(clock: VirtualClock, dataplane: Dataplane, rate_bps: int) -> None:
    port = dataplane.ports[2]
    port.queues[0].set_rate_bps(clock(), rate_bps)
    dataplane.rates_changed(port)


@pytest.mark.parametrize(("before", "after"), [(SLOWER, 1), (1, SLOWER)])
def test_frames_that_wait_take_another_rate_and_stay_in_order(
    clock: VirtualClock, dataplane: Dataplane, before: int, after: int
) -> None:
    departures = listen(clock, dataplane)
    set_rate(clock, dataplane, RATE_BPS // before)
    arrive(dataplane, range(3))
    clock.now_ps = 10
    set_rate(clock, dataplane, RATE_BPS // after)
    arrive(dataplane, range(3, 5))
    clock.run([dataplane], LATER)

    # The first frame has begun, and is sent to its end at the former rate.
    times = [before * T + after * T * index for index in range(5)]
    assert departures == [(when, frame_to(2, number)) for number, when in enumerate(times)]


def test_frames_wait_in_their_queue_for_an_interface_that_takes_no_more(
    clock: VirtualClock, dataplane: Dataplane
) -> None:
    departures = listen(clock, dataplane)
    port = dataplane.ports[2]
    end_of(dataplane, 2).is_full = True
    count = 3 * MAX_WAITING
    for number in range(count):
        arrive(dataplane, range(number, number + 1))
        clock.run([dataplane], clock() + T)
        clock.now_ps = (number + 1) * T

    assert len(port.stuck) == 1, "all others wait before egress, where programs see them"
    assert len(port.lines[0].waiting) == MAX_WAITING
    assert port.counts.waiting_drops == count - MAX_WAITING - 1

    end_of(dataplane, 2).is_full = False
    clock.run([dataplane], LATER)
    assert [frame for _, frame in departures] == [frame_to(2, n) for n in range(MAX_WAITING + 1)]
    assert port.counts.tx_packets * PACKET == port.counts.tx_bytes
