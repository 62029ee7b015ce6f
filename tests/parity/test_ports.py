"""The port's bodies, for frames, for kernels' records and the plain model's, with equal offers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.demand import traffic
from fattree.experiment.model import (
    Collective,
    Degraded,
    Fabric,
    Failures,
    Scenario,
    Transport,
)
from fattree.routes.failures import timeline
from ofan_p4.softswitch.ports.queue import Passage
from sim.arrays.network import build
from sim.kernels import state
from sim.kernels.ports import settle
from sim.kernels.state import ACK, DATA, TRIMMED
from sim.kernels.switches import enqueue
from tests import naive
from tests.naive import packet as plain
from tests.python_network.ports import ports_of
from tests.python_network.wires import Wires

# A fabric of single links: port 2 of the first switch is its uplink, the link below it is 1.
SWITCH, PORT, LINK, LEVEL = 0, 2, 1, 1
NAME = "edge0_0-agg0_0"
WHOLE, LAST, SHORT, NACK = "data", "last data", "ack", "nack"
# The bytes of payload of a last packet.
LEFT = 1_000


class Readings(NamedTuple):
    """A body's values after all offers: departures of accepted packets, in order of arrival."""

    departures_ps: list[int]
    occupancy: int
    max_bytes: int
    byte_ps: int
    dropped: int
    trimmed: int


Offers = list[tuple[int, str]]
Body = Callable[[Scenario, Offers], Readings]


def of_frames(scenario: Scenario, offers: Offers) -> Readings:
    wires = Wires(scenario, timeline(scenario, traffic.flows(scenario)))
    port = ports_of(scenario, SWITCH, wires)[PORT]
    passages: list[Passage] = []
    now_ps = 0
    for now_ps, kind in offers:
        sizes = {WHOLE: scenario.data_bytes, LAST: scenario.packet_bytes(LEFT)}
        size = sizes.get(kind, scenario.ack_bytes)
        passage = port.offer(now_ps, size, is_urgent=kind == NACK)
        passages += [passage] if passage else []

    return Readings(
        [passage.departure_ps for passage in passages],
        port.queue.occupancy_bytes(now_ps),
        port.queue.max_bytes,
        port.queue.byte_ps,
        port.counts["dropped"],
        port.counts["trimmed"],
    )


def of_kernels(scenario: Scenario, offers: Offers) -> Readings:
    world = build(scenario).world
    constants, packets = world.constants, world.pool.packets
    link, ledger = world.links[LINK], world.ledgers[LINK]
    lane = world.links[constants.lanes + LINK]
    slots = []
    now_ps = 0
    for number, (now_ps, kind) in enumerate(offers):
        packet = np.zeros(1, dtype=packets.dtype).view(np.recarray)[0]
        packet.status = {WHOLE: DATA, LAST: state.SHORT, SHORT: ACK, NACK: ACK | TRIMMED}[kind]
        packet.psn = number
        tails = int(link.tail), int(lane.tail)
        enqueue(world, SWITCH, LINK, LEVEL, packet, now_ps)
        slots += [
            slot
            for way, slot in zip((link, lane), tails, strict=True)
            if way.tail != slot and packets[slot].psn == number
        ][:1]

    settle(world, link, LEVEL, now_ps)
    return Readings(
        [int(packets[slot].time_ps) - scenario.latency_ps for slot in slots],
        int(link.occupancy),
        int(link.max_bytes),
        int(link.byte_ps),
        int(ledger.dropped),
        int(ledger.trimmed),
    )


def of_plain_model(scenario: Scenario, offers: Offers) -> Readings:
    network = naive.Network(scenario)
    port = network.ports[SWITCH, PORT]
    now_ps = 0
    for now_ps, kind in offers:
        packet = plain.Packet(
            flow=0,
            psn=0,
            source=0,
            destination=1,
            kind=plain.DATA if kind in (WHOLE, LAST) else plain.ACK,
            label=0,
            trimmed=kind == NACK,
            payload={WHOLE: scenario.packets.payload_bytes, LAST: LEFT}.get(kind, 0),
        )
        network.enqueue((SWITCH, PORT), packet, now_ps)

    passages = sorted(port.log + port.hurried, key=lambda passage: passage.turn)
    return Readings(
        [passage.departure_ps for passage in passages],
        port.bytes_at(now_ps),
        port.max_bytes,
        port.byte_ps(naive.NEVER),
        port.drops,
        port.trims,
    )


BODIES: dict[str, Body] = {
    "frames": of_frames,
    "kernels": of_kernels,
    "plain": of_plain_model,
}


def scenario(*degraded: Degraded, capacity: int = 0, **settings: Any) -> Scenario:
    return Scenario(
        fabric=Fabric(k=2, queue_bytes=capacity, rate_gbps=settings.pop("rate_gbps", 800)),
        failures=Failures(degraded=degraded),
        transport=Transport(**settings),
        collective=Collective(message_bytes=4_096 + LEFT),
    )


# 10 ps a byte: data take 41,580 ps and hold the link for 41,780, cut packets 640 and 840.
HALF = Degraded(link=NAME, rate=0.5, at_ns=42, until_ns=150)
BURST = [(0, WHOLE)] * 3


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    ("offers", "departures_ps"),
    [
        # The second starts before the link is slow, the third after that.
        (BURST, [41_580, 83_360, 166_720]),
        # The NACK is first, so that the second is slow, too: 42,620 + 83,160.
        ([*BURST, (10_000, NACK)], [41_580, 125_780, 209_340, 42_420]),
        # A cut packet is behind the first NACK: 42,620 + 1,280; then from 44,300 on.
        (
            [*BURST, (10_000, NACK), (20_000, WHOLE)],
            [41_580, 127_460, 211_020, 42_420, 43_900],
        ),
        # 13 more take 1,680 each, so that the third starts at 149,700; one more, and it starts at
        # 151,380, when the link is whole again, and leaves earlier.
        (
            [*BURST, *[(10_000, NACK)] * 15],
            [41_580, 149_300, 232_860, 42_420, *range(43_900, 43_900 + 14 * 1_680, 1_680)],
        ),
        (
            [*BURST, *[(10_000, NACK)] * 16],
            [41_580, 150_980, 192_960, 42_420, *range(43_900, 43_900 + 15 * 1_680, 1_680)],
        ),
    ],
    ids=["no lane", "a NACK", "cut", "just not whole again", "earlier"],
)
def test_a_lane_at_a_slow_link_in_numbers_by_hand(
    body: Body, offers: Offers, departures_ps: list[int]
) -> None:
    slow = scenario(HALF, capacity=3 * 4_158, trimming=True)
    assert body(slow, offers).departures_ps == departures_ps


DATA_BYTES, CUT_BYTES = 4_158, 64
# As many as have room in a lane as long as the queue.
LANE = 65 * [(0, NACK)]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    ("capacity", "trims", "offers", "accepted", "dropped", "trimmed"),
    [
        # Room for all of a packet, and not for a byte less.
        (2 * DATA_BYTES - 1, False, BURST, 1, 2, 0),
        (2 * DATA_BYTES, False, BURST, 2, 1, 0),
        (2 * DATA_BYTES + 1, False, BURST, 2, 1, 0),
        (3 * DATA_BYTES - 1, False, BURST, 2, 1, 0),
        (3 * DATA_BYTES, False, BURST, 3, 0, 0),
        # ACKs fit where data do not.
        (DATA_BYTES + CUT_BYTES - 1, False, [(0, WHOLE), (0, SHORT)], 1, 1, 0),
        (DATA_BYTES + CUT_BYTES, False, [(0, WHOLE), (0, SHORT), (0, WHOLE)], 2, 1, 0),
        # There is room from the instant on at which a packet's last bit is out.
        (DATA_BYTES, False, [(0, WHOLE), (41_579, WHOLE)], 1, 1, 0),
        (DATA_BYTES, False, [(0, WHOLE), (41_580, WHOLE)], 2, 0, 0),
        # A cut packet needs no room in the queue; a packet as short as that cannot be cut.
        (DATA_BYTES, True, [(0, WHOLE), (0, WHOLE), (0, SHORT)], 2, 1, 1),
        (DATA_BYTES, True, [(0, WHOLE), (0, LAST)], 2, 0, 1),
        # A lane as long as the queue: 64 packets of 64 bytes are 4,096, 65 are 4,160.
        (DATA_BYTES + 1, True, [(0, WHOLE), *LANE], 65, 1, 0),
        (DATA_BYTES + 2, True, [(0, WHOLE), *LANE], 66, 0, 0),
        (DATA_BYTES + 3, True, [(0, WHOLE), *LANE, (0, NACK)], 66, 1, 0),
        (DATA_BYTES + 2, True, [(0, WHOLE), *LANE, (0, WHOLE)], 66, 1, 0),
        # The first of the lane leaves from 41,780 to 42,420.
        (DATA_BYTES + 2, True, [(0, WHOLE), *LANE, (42_419, NACK)], 66, 1, 0),
        (DATA_BYTES + 2, True, [(0, WHOLE), *LANE, (42_420, NACK)], 67, 0, 0),
    ],
)
def test_a_port_has_room_to_the_byte_and_to_the_picosecond(
    body: Body,
    capacity: int,
    trims: bool,
    offers: Offers,
    accepted: int,
    dropped: int,
    trimmed: int,
) -> None:
    readings = body(scenario(capacity=capacity, trimming=trims), offers)
    assert (len(readings.departures_ps), readings.dropped, readings.trimmed) == (
        accepted,
        dropped,
        trimmed,
    )


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    ("now_ps", "departures_ps"),
    [
        # The second packet has not begun: it gives way.
        (41_779, [41_580, 84_200, 42_420]),
        # It begins at this very instant, as the gap of the first ends: it goes first.
        (41_780, [41_580, 83_360, 84_200]),
        (41_781, [41_580, 83_360, 84_200]),
    ],
)
def test_what_begins_at_an_instant_is_ahead_of_what_comes_then(
    body: Body, now_ps: int, departures_ps: list[int]
) -> None:
    chosen = scenario(capacity=3 * DATA_BYTES, trimming=True)
    assert body(chosen, [*BURST[:2], (now_ps, NACK)]).departures_ps == departures_ps


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    ("start_ps", "sending_ps"),
    [(41_999, 41_580), (42_000, 83_160), (149_999, 83_160), (150_000, 41_580)],
)
def test_a_rate_holds_from_its_instant_on(body: Body, start_ps: int, sending_ps: int) -> None:
    readings = body(scenario(HALF), [(start_ps, WHOLE)])
    assert readings.departures_ps == [start_ps + sending_ps]


@st.composite
def rates(draw: Any) -> list[Degraded]:
    from_ns = st.integers(0, 2_000)
    lasts_ns = st.one_of(st.none(), st.integers(1, 800))
    spans = draw(st.lists(st.tuples(from_ns, lasts_ns), max_size=4))
    return [
        Degraded(
            link=NAME,
            rate=draw(st.sampled_from((0.5, 0.1, 0.37))),
            direction=draw(st.sampled_from(("both", "up"))),
            at_ns=at_ns,
            until_ns=None if lasts_ns is None else at_ns + lasts_ns,
        )
        for at_ns, lasts_ns in spans
    ]


@given(
    waits=st.lists(
        st.tuples(
            st.one_of(st.just(0), st.integers(0, 100_000)),
            st.sampled_from((WHOLE, LAST, SHORT, NACK)),
        ),
        min_size=1,
        max_size=80,
    ),
    degraded=rates(),
    capacity=st.sampled_from([0, 4_158, 9_000, 30_000]),
    rate_gbps=st.sampled_from([800, 333, 100]),
    trimming=st.booleans(),
)
def test_all_bodies_drop_cut_delay_and_fill_alike(
    waits: Offers, degraded: list[Degraded], capacity: int, rate_gbps: int, trimming: bool
) -> None:
    trims = trimming and capacity > 0
    chosen = scenario(*degraded, capacity=capacity, rate_gbps=rate_gbps, trimming=trims)
    offers: Offers = []
    now_ps = 0
    for wait_ps, kind in waits:
        now_ps += wait_ps
        offers.append((now_ps, SHORT if kind == NACK and not trims else kind))

    expected = of_plain_model(chosen, offers)
    assert of_frames(chosen, offers) == expected
    assert of_kernels(chosen, offers) == expected
