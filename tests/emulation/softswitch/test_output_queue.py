"""The output queue against the sentence that defines it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ofan_p4.softswitch.ports.queue import OutputQueue, Passage

PS = 10**12


@dataclass
class NaiveQueue:
    """Keeps every accepted packet for ever and recounts at each question."""

    rate_bps: int
    capacity_bytes: int | None
    capacity_packets: int | None
    gap_bytes: int
    accepted: list[tuple[int, int, int]] = field(default_factory=list)

    def left(self, now: int) -> list[int]:
        return [size for size, departure, _ in self.accepted if departure > now]

    def offer(self, now: int, size: int) -> int | None:
        inside = self.left(now)
        if self.capacity_bytes is not None and sum(inside) + size > self.capacity_bytes:
            return None
        if self.capacity_packets is not None and len(inside) + 1 > self.capacity_packets:
            return None
        start = max([now, *(free for _, _, free in self.accepted)])
        self.accepted.append((size, start + self.tx(size), start + self.tx(size + self.gap_bytes)))

        return start + self.tx(size)

    def tx(self, size: int) -> int:
        bits = size * 8 * PS
        return bits // self.rate_bps + (bits % self.rate_bps > 0)


@given(
    offers=st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(1, 1500)), max_size=30),
    rate=st.integers(10**6, 10**12),
    capacity=st.none() | st.integers(0, 6000),
    packets=st.none() | st.integers(0, 6),
    gap=st.sampled_from([0, 20]),
)
def test_matches_the_naive_queue(
    offers: list[tuple[int, int]], rate: int, capacity: int | None, packets: int | None, gap: int
) -> None:
    queue, naive = (
        OutputQueue(rate, capacity, packets, gap),
        NaiveQueue(rate, capacity, packets, gap),
    )
    now = dropped = 0
    for wait, size in offers:
        now += wait
        expected = naive.offer(now, size)
        dropped += expected is None
        assert departure(queue, now, size) == expected
        assert queue.occupancy_bytes(now) == sum(naive.left(now))
        assert queue.depth_packets(now) == len(naive.left(now))

    assert queue.drops == dropped


def departure(queue: OutputQueue, now: int, size: int, is_urgent: bool = False) -> int | None:
    passage = queue.offer(now, size, is_urgent)
    return None if passage is None else passage.departure_ps


def test_the_papers_data_packet_holds_an_800_gbps_link_for_41780_ps() -> None:
    queue = OutputQueue(800 * 10**9, None, gap_bytes=20)

    assert departure(queue, 0, 4158) == 41_580

    behind = queue.offer(0, 64)

    assert behind is not None
    assert (behind.start_ps, behind.departure_ps) == (41_780, 41_780 + 640)
    assert queue.max_bytes == 4158 + 64
    assert queue.byte_ps == 4158 * 41_580 + 64 * 42_420


def test_a_packet_has_left_at_its_departure_and_makes_room() -> None:
    queue = OutputQueue(8 * 10**9, 100)
    departure_ps = departure(queue, 0, 100)

    assert departure_ps is not None
    assert queue.offer(departure_ps - 1, 100) is None
    assert departure(queue, departure_ps, 100) == 2 * departure_ps


def test_rate_in_packets_ignores_sizes() -> None:
    queue = OutputQueue(None, None, rate_pps=1000)
    assert [departure(queue, 0, size) for size in (64, 9000)] == [PS // 1000, 2 * PS // 1000]


def test_without_a_rate_packets_leave_at_once() -> None:
    queue = OutputQueue(None, 10)

    assert [departure(queue, 5, 10), departure(queue, 5, 10)] == [5, 5]
    assert queue.occupancy_bytes(5) == queue.max_bytes == 0


@pytest.mark.parametrize(
    "rates", [{"rate_bps": 0}, {"rate_bps": 1, "rate_pps": 1}, {"rate_bps": None, "rate_pps": -1}]
)
def test_impossible_rates_are_refused(rates: dict[str, int | None]) -> None:
    with pytest.raises(ValueError, match="rate"):
        OutputQueue(rates.get("rate_bps"), None, rate_pps=rates.get("rate_pps"))


def test_a_rate_holds_for_what_starts_from_then_on_foreseen_or_not() -> None:
    foreseen = OutputQueue(8 * 10**9, None)
    foreseen.foresee_rates([(100_000, 4 * 10**9), (500_000, 8 * 10**9)])
    departures = [departure(foreseen, 0, 100) for _ in range(4)]

    assert departures == [100_000, 300_000, 500_000, 600_000]
    assert [foreseen.tx_ps(start, 1) for start in (99_999, 100_000, 500_000)] == [1000, 2000, 1000]

    queue = OutputQueue(8 * 10**9, None)
    first, second, third = taken(queue, 0, 100, times=3)

    assert times(first, second, third) == [(0, 100_000), (100_000, 200_000), (200_000, 300_000)]

    # The second packet starts at this very instant; a moment later it would have begun.
    queue.set_rate_bps(100_000, 4 * 10**9)

    assert times(first, second, third) == [(0, 100_000), (100_000, 300_000), (300_000, 500_000)]
    assert queue.byte_ps == 100 * (100_000 + 300_000 + 500_000)
    assert queue.occupancy_bytes(299_999) == 200

    queue.set_rate_bps(300_001, 8 * 10**9)

    assert times(third) == [(300_000, 500_000)]

    (fourth,) = taken(queue, 300_001, 100)

    assert times(fourth) == [(500_000, 600_000)]

    queue.set_rate_bps(300_001, 4 * 10**9)

    assert times(third, fourth) == [(300_000, 500_000), (500_000, 700_000)]


# 8 Gb/s: 1,000 ps a byte, so 100 bytes and a gap of 20 take 120,000 ps, and 10 bytes 30,000.
RATE = 8 * 10**9


def taken(
    queue: OutputQueue, now: int, size: int, times: int = 1, is_urgent: bool = False
) -> list[Passage]:
    passages = [queue.offer(now, size, is_urgent) for _ in range(times)]
    return [passage for passage in passages if passage is not None]


def times(*passages: Passage) -> list[tuple[int, int]]:
    return [(passage.start_ps, passage.departure_ps) for passage in passages]


def trimming(capacity: int = 300) -> OutputQueue:
    return OutputQueue(RATE, capacity, gap_bytes=20, trim_to=10)


def test_what_is_cut_goes_behind_what_is_being_sent_and_before_what_waits() -> None:
    queue = trimming()
    first, second, third = taken(queue, 0, 100, times=3)

    (header,) = taken(queue, 50_000, 100)

    assert (header.size, header.is_urgent) == (10, True)
    assert times(header, first) == [(120_000, 130_000), (0, 100_000)]
    assert times(second, third) == [(150_000, 250_000), (270_000, 370_000)]
    assert queue.byte_ps == 100 * (100_000 + 250_000 + 370_000)

    # Another header behind it; a header at the very instant of a start is too late for that.
    (again,) = taken(queue, 60_000, 10, is_urgent=True)

    assert times(again, second) == [(150_000, 160_000), (180_000, 280_000)]

    (late,) = taken(queue, 180_000, 10, is_urgent=True)

    assert times(second, late, third) == [
        (180_000, 280_000),
        (300_000, 310_000),
        (330_000, 430_000),
    ]
    assert not queue.has_hastened
    assert queue.depth_packets(180_000) == 2 and queue.max_bytes == 300


def test_headers_wait_for_the_gap_and_for_nothing_else() -> None:
    queue = trimming()
    taken(queue, 0, 100)

    assert departure(queue, 110_000, 10, is_urgent=True) == 130_000
    assert departure(queue, 500_000, 10, is_urgent=True) == 510_000
    assert departure(queue, 500_000, 100) == 630_000


def test_the_lane_has_room_of_its_own_and_an_ack_is_not_cut() -> None:
    queue = trimming(capacity=20)

    assert len(taken(queue, 0, 10, times=3, is_urgent=True)) == 2
    assert queue.occupancy_bytes(0) == 0 and queue.offer(0, 20) is not None
    assert queue.offer(0, 10) is None
    # The first has left.
    assert queue.offer(10_000, 100) is not None
    assert queue.drops == 2


def test_a_port_without_a_lane_drops_what_is_urgent() -> None:
    assert OutputQueue(RATE, None).offer(0, 100, is_urgent=True) is None


def test_whoever_gives_way_takes_as_long_as_the_rate_at_its_new_start_says() -> None:
    queue = trimming()
    # Half the rate from 150,000 ps on, and all of it again from 400,000 ps on.
    queue.foresee_rates([(150_000, RATE // 2), (400_000, RATE)])
    first, second, third = taken(queue, 0, 100, times=3)

    assert times(first, second, third) == [(0, 100_000), (120_000, 220_000), (240_000, 440_000)]

    (header,) = taken(queue, 50_000, 100)

    assert times(header, second, third) == [
        (120_000, 130_000),
        (150_000, 350_000),
        (390_000, 590_000),
    ]
    assert not queue.has_hastened

    # The third is late enough for the whole rate, and leaves earlier for it.
    (nack,) = taken(queue, 60_000, 10, is_urgent=True)

    assert times(nack, second, third) == [
        (150_000, 170_000),
        (210_000, 410_000),
        (450_000, 550_000),
    ]
    assert queue.has_hastened

    (fourth,) = taken(queue, 300_000, 100)
    (cut,) = taken(queue, 300_000, 100)

    assert times(cut, third, fourth) == [(450_000, 460_000), (480_000, 580_000), (600_000, 700_000)]
    assert queue.byte_ps == 100 * (100_000 + 410_000 + 580_000 + 400_000)


def test_a_rate_that_changes_unforeseen_is_the_lanes_too() -> None:
    queue = trimming()
    first, second = taken(queue, 0, 100, times=2)
    # It comes when the second packet has begun to be sent, by its instant.
    (header,) = taken(queue, 120_000, 10, is_urgent=True)
    queue.set_rate_bps(120_000, RATE // 2)

    assert times(first, second, header) == [(0, 100_000), (120_000, 320_000), (360_000, 380_000)]

    (third,) = taken(queue, 130_000, 100)
    queue.set_rate_bps(370_000, RATE)

    assert times(header, third) == [(360_000, 380_000), (420_000, 520_000)]
