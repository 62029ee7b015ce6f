"""Switches that pause their links by real frames, whole but for sockets, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.daemon.dataplane import Dataplane
from ofan_p4.softswitch.daemon.gates import Watchdog
from ofan_p4.softswitch.ports.pause_frames import MOST_QUANTA, is_control, pause_frame, pause_ps
from tests.emulation.softswitch.pausing import (
    FRAME,
    LATENCY,
    PACKET,
    RATE_BPS,
    SLOT,
    Host,
    T,
    VirtualClock,
    attach,
    counts,
    end_of,
    frame_to,
    join,
    switch,
)

ENGINES: tuple[Engine, ...] = ("python", "native")
FOREVER = 10**12
Switch = Callable[..., Dataplane]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def new_switch(clock: VirtualClock) -> Iterator[Switch]:
    made: list[Dataplane] = []

    def new(
        ports: int, limits: tuple[int, int, int], engine: Engine = "python", priorities: int = 1
    ) -> Dataplane:
        made.append(switch(clock, ports, limits, engine, priorities))
        return made[-1]

    yield new
    for dataplane in made:
        dataplane.close()


def incast(clock: VirtualClock, plane: Dataplane, frames: int = 100) -> list[Host]:
    """Let hosts at ports 1 and 2 send at line rate to the host at port 3."""
    hosts = [attach(clock, plane, number, out=3, frames=frames) for number in (1, 2)]
    hosts.append(attach(clock, plane, 3, out=1, frames=0))
    for host in hosts:
        host.start()

    clock.run([plane], FOREVER)
    return hosts


@pytest.mark.parametrize("engine", ENGINES)
def test_a_buffer_needs_room_for_what_is_under_way_and_not_a_byte_less(
    clock: VirtualClock, new_switch: Switch, engine: Engine
) -> None:
    # The incast of tests/theory/test_pauses.py: when the nth packets of both hosts come, n - 1 have
    # left, the first host's first; the second one's buffer then has n - (n - 1) // 2 of its own.
    whole = 10
    crosses = 2 * whole
    last = crosses + (T + LATENCY + FRAME + LATENCY) // SLOT
    needed = (last - (last - 1) // 2) * PACKET

    def dropped(capacity: int) -> int:
        limits = capacity, whole * PACKET, (whole - 2) * PACKET
        fresh = VirtualClock()
        dataplane = switch(fresh, 3, limits, engine)
        *senders, receiver = incast(fresh, dataplane)
        lost = sum(counts(dataplane, "queue_drops"))
        assert sum(sender.sent for sender in senders) == len(receiver.received) + lost
        dataplane.close()
        return int(lost)

    assert dropped(needed) == 0
    assert dropped(needed - 1) > 0


def test_a_sender_hears_of_a_pause_when_the_closed_form_says(
    clock: VirtualClock, new_switch: Switch
) -> None:
    whole = 10
    dataplane = new_switch(3, (10**6, whole * PACKET, (whole - 2) * PACKET))
    first, second, _ = incast(clock, dataplane)

    # As many have come by then as in tests/theory/test_pauses.py; 2 * whole of the second host's.
    for host, arrivals in ((first, 2 * whole + 1), (second, 2 * whole)):
        came_ps = T + LATENCY + (arrivals - 1) * SLOT
        assert host.pauses[0] == (came_ps + FRAME + LATENCY, MOST_QUANTA)
        quanta = [told for _, told in host.pauses]
        assert quanta == [MOST_QUANTA, 0] * (len(quanta) // 2), "each pause ends"


class Chain:
    """Two hosts at a first switch; their packets leave a second by a port that may be held."""

    def __init__(self, clock: VirtualClock, new_switch: Switch, engine: Engine) -> None:
        self.clock = clock
        limits = 200 * PACKET, 20 * PACKET, 18 * PACKET
        self.first, self.second = (new_switch(3, limits, engine) for _ in range(2))
        self.wire = join(end_of(self.first, 3), end_of(self.second, 1), clock)
        self.hosts = [attach(clock, self.first, number, out=3, frames=300) for number in (1, 2)]
        self.receiver = attach(clock, self.second, 3, out=1, frames=0)
        for host in self.hosts:
            host.start()

    def hold(self, when_ps: int, quanta: int) -> None:
        """Pause the port by which all leaves the second switch, as its receiver would."""
        frame = pause_frame(bytes(6), {0: quanta})
        self.clock.at(when_ps, lambda: end_of(self.second, 3).waiting.append(frame))

    def run(self, until_ps: int = FOREVER) -> None:
        self.clock.run([self.first, self.second], until_ps)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_switches_lose_nothing_and_a_paused_port_sends_nothing(
    clock: VirtualClock, new_switch: Switch, engine: Engine
) -> None:
    chain = Chain(clock, new_switch, engine)
    chain.wire.clear()
    # Of three packets' time the bottleneck may use one packet's.
    for turn in range(400):
        chain.hold(3 * turn * SLOT, MOST_QUANTA)
        chain.hold((3 * turn + 2) * SLOT, 0)

    chain.run()
    assert [frame[:14] for _, frame in chain.receiver.received] == [frame_to(3, 0)[:14]] * 600
    for link in (chain.first, chain.second):
        assert sum(counts(link, "queue_drops")) == 0
        assert all(gate.buffer.held == 0 for port in link.ports.values() for gate in port.gates)

    back = [(when, frame) for when, way, frame in chain.wire if way == "back"]
    forth = [when for when, way, _ in chain.wire if way == "forth"]
    told = [(when, Ether(frame)) for when, frame in back]
    assert all(is_control(frame) for _, frame in back), "control frames and nothing else"
    assert not any(is_control(frame) for _, way, frame in chain.wire if way == "forth")
    for _, packet in told:
        pause = packet[MACControlClassBasedFlowControl]
        assert (packet.dst, packet.src, packet.type) == (
            "01:80:c2:00:00:01",
            "02:00:00:00:00:11",
            0x8808,
        )
        assert (pause._op_code, pause.c0_enabled) == (0x0101, 1)

    times = [(when, packet[MACControlClassBasedFlowControl].c0_pause_time) for when, packet in told]
    assert [quanta for _, quanta in times] == [MOST_QUANTA, 0] * (len(times) // 2)
    assert len(times) > 10, "the link was paused again and again"
    for (paused, quanta), (resumed, _) in pairwise(times):
        if quanta:
            # A frame comes a packet's time and a latency after its start; none starts in a pause.
            assert not [link for link in forth if paused < link - T - LATENCY < resumed]

    paused_ps = sum(after - before for (before, is_on), (after, _) in pairwise(times) if is_on)
    port = chain.first.ports[3].statistics(clock())
    assert port["paused_ps"] == paused_ps
    assert port["control_received"] == len(times)
    below = chain.second.ports[1].statistics(clock())
    assert (below["pauses"], below["control_sent"]) == (len(times) // 2, len(times))
    assert sum(counts(chain.first, "pauses")) > 0, "and the first switch pauses its hosts"


def test_a_pause_lasts_as_many_quanta_as_it_says(clock: VirtualClock, new_switch: Switch) -> None:
    chain = Chain(clock, new_switch, "python")
    chain.run(20 * SLOT + 2 * LATENCY)
    came_ps = clock()
    chain.hold(came_ps, 100)
    chain.run()

    pause = pause_ps(100, RATE_BPS)
    assert pause == 64_000
    times = [when for when, _ in chain.receiver.received]
    assert not [when for when in times if came_ps + T + LATENCY < when < came_ps + pause + T]
    assert came_ps + pause + T + LATENCY in times, "nobody has said that it may go on"
    assert chain.second.ports[3].statistics(clock())["paused_ps"] == pause


@pytest.mark.parametrize(
    "times",
    [(MOST_QUANTA, 1) * 500, range(MOST_QUANTA, MOST_QUANTA - 1000, -1)],
    ids=["long and short", "falling"],
)
def test_a_thousand_pauses_of_a_port_are_one_event(
    clock: VirtualClock, new_switch: Switch, times: Sequence[int]
) -> None:
    dataplane = new_switch(3, (10**9, 10**9 - 10**6, 0))
    for quanta in times:
        assert dataplane._pauses.takes(dataplane.ports[3], pause_frame(bytes(6), {0: quanta}))

    # The last one takes the place of those before it.
    assert len(dataplane._events) == 0
    assert dataplane._due_ps() == min(pause_ps(quanta, RATE_BPS) for quanta in times)
    clock.run([dataplane], pause_ps(times[-1], RATE_BPS) - 1)
    assert dataplane.ports[3].gates[0].queue.is_paused
    clock.run([dataplane], pause_ps(times[-1], RATE_BPS))
    assert not dataplane.ports[3].gates[0].queue.is_paused


@pytest.mark.parametrize("drops", [True, False])
@pytest.mark.parametrize(("off", "trips"), [(-1, False), (0, False), (1, True)])
def test_a_watchdog_acts_on_a_longer_pause(
    clock: VirtualClock, new_switch: Switch, off: int, trips: bool, drops: bool
) -> None:
    chain = Chain(clock, new_switch, "python")
    longest = pause_ps(MOST_QUANTA, RATE_BPS)
    for gate in chain.second.ports[3].gates:
        gate.watchdog = Watchdog(longest - off, drops)

    chain.run(20 * SLOT + 2 * LATENCY)
    came_ps = clock()
    chain.hold(came_ps, MOST_QUANTA)
    chain.run(came_ps + longest - 1)
    gate = chain.second.ports[3].gates[0]
    assert gate.is_storm is trips and gate.queue.is_paused is not trips
    dropped = sum(counts(chain.second, "queue_drops"))
    assert (dropped > 0) is (trips and drops)
    chain.run()
    dropped = sum(counts(chain.second, "queue_drops"))
    assert len(chain.receiver.received) + dropped == 600
    assert not gate.is_storm and not chain.second.ports[3].lines[0].waiting
    assert chain.second.ports[3].statistics(clock())["paused_ps"] == longest


def test_a_pause_is_renewed_before_it_ends_for_as_long_as_it_is_needed(
    clock: VirtualClock, new_switch: Switch
) -> None:
    chain = Chain(clock, new_switch, "python")
    longest = pause_ps(MOST_QUANTA, RATE_BPS)
    for turn in range(4):
        chain.hold(turn * longest // 2, MOST_QUANTA)

    held_ps = 3 * longest // 2 + longest
    chain.run(held_ps - 1)
    back = [when for when, way, _ in chain.wire if way == "back"]
    assert len(back) == 5, "told once, and renewed"
    assert all(after - before < longest for before, after in pairwise(back))
    assert not chain.receiver.received
    assert chain.second.ports[1].counts.pauses == 1, "it is one pause"
    assert all(host.is_paused for host in chain.hosts)

    chain.run()
    assert len(chain.receiver.received) == 600


def test_a_frame_that_the_interface_does_not_take_is_told_later_as_it_is_then(
    clock: VirtualClock, new_switch: Switch
) -> None:
    chain = Chain(clock, new_switch, "python")
    chain.hold(0, MOST_QUANTA)
    back = end_of(chain.second, 1)
    back.is_full = True
    chain.run(80 * SLOT + 2 * LATENCY)
    assert chain.second.ports[1].gates[0].buffer.is_pausing
    assert not [way for _, way, _ in chain.wire if way == "back"]

    back.is_full = False
    chain.hold(clock(), 0)
    chain.run()
    quanta = [
        Ether(frame)[MACControlClassBasedFlowControl].c0_pause_time
        for _, way, frame in chain.wire
        if way == "back"
    ]
    assert quanta[-1] == 0, "a pause must not come after its end"
    assert len(chain.receiver.received) + sum(counts(chain.second, "queue_drops")) == 600


@pytest.mark.parametrize("engine", ENGINES)
def test_each_priority_has_its_own_buffer_and_pauses(
    clock: VirtualClock, new_switch: Switch, engine: Engine
) -> None:
    dataplane = new_switch(2, (100 * PACKET, 10 * PACKET, 8 * PACKET), engine, priorities=2)
    told: list[bytes] = []
    end_of(dataplane, 1).deliver = told.append
    receiver = attach(clock, dataplane, 2, out=1, frames=0)
    end_of(dataplane, 2).waiting.append(pause_frame(bytes(6), {1: MOST_QUANTA}))
    for number in range(11):
        for priority in (1, 0):
            end_of(dataplane, 1).waiting.append(frame_to(2, number, priority))

    for port in (2, 1):
        dataplane._receive(dataplane.ports[port])
    clock.run([dataplane], 30 * SLOT + LATENCY)
    assert [frame[4] for _, frame in receiver.received] == [0] * 11, "the others are held"
    by_priority = [Ether(frame)[MACControlClassBasedFlowControl] for frame in told]
    assert [
        (pause.c0_enabled, pause.c0_pause_time) for pause in by_priority if pause.c0_enabled
    ] == [
        (1, MOST_QUANTA),
        (1, 0),
    ]
    paused = [pause for pause in by_priority if pause.c1_enabled]
    assert [pause.c1_pause_time for pause in paused] == [MOST_QUANTA]

    end_of(dataplane, 2).waiting.append(pause_frame(bytes(6), {1: 0}))
    dataplane._receive(dataplane.ports[2])
    clock.run([dataplane], FOREVER)
    assert [frame[4] for _, frame in receiver.received] == [0] * 11 + [1] * 11
    assert all(gate.buffer.held == 0 for port in dataplane.ports.values() for gate in port.gates)


def test_a_link_that_comes_back_begins_without_pauses(
    clock: VirtualClock, new_switch: Switch
) -> None:
    chain = Chain(clock, new_switch, "python")
    chain.hold(0, MOST_QUANTA)
    chain.run(80 * SLOT + 2 * LATENCY)
    above = chain.first.ports[3]
    assert above.gates[0].queue.is_paused and above.lines[0].waiting

    # At both ends, as the kernel notifies both.
    below = chain.second.ports[1]
    below.is_up = False
    for dataplane, port in ((chain.first, above), (chain.second, below)):
        dataplane._pauses.link_changed(port)

    assert not above.gates[0].queue.is_paused
    before = len(chain.wire)
    below.is_up = True
    chain.second._pauses.link_changed(below)
    chain.run(clock() + 2 * LATENCY)
    back = [frame for _, way, frame in chain.wire[before:] if way == "back"]
    assert back == [pause_frame(below.address, {0: MOST_QUANTA})], "its buffer is as full as before"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "frame",
    [
        pause_frame(bytes(6), {0: MOST_QUANTA})[:33],
        bytes.fromhex("0180c2000001 020000000011 8808 0001 ffff").ljust(60, b"\0"),
        bytes.fromhex("020000000003 020000000011 8808 0101 0001 ffff").ljust(60, b"\0"),
        bytes.fromhex("0180c2000003 020000000011 8808 0101 0001 ffff").ljust(60, b"\0"),
        bytes.fromhex("0180c2000001 020000000011 0800 0101 0001 ffff").ljust(60, b"\0"),
    ],
    ids=["short", "802.3x", "no group", "another group", "another EtherType"],
)
def test_malformed_control_frames_are_counted_and_go_nowhere(
    clock: VirtualClock, new_switch: Switch, engine: Engine, frame: bytes
) -> None:
    dataplane = new_switch(3, (10**6, 10**5, 0), engine)
    hosts = [attach(clock, dataplane, number, out=3, frames=0) for number in (1, 2, 3)]
    end_of(dataplane, 2).waiting.append(frame)
    dataplane._receive(dataplane.ports[2])
    clock.run([dataplane], FOREVER)

    counted = dataplane.ports[2].counts
    assert (counted.control_received, counted.control_malformed) == (1, 1)
    assert (counted.rx_packets, dataplane.switch.counts.received) == (0, 0)
    assert not any(host.received or host.pauses for host in hosts)
    assert not dataplane.ports[2].gates[0].queue.is_paused
