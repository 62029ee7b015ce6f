"""The output queue against the sentence that defines it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulation.softswitch.queue import OutputQueue

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
        assert queue.offer(now, size) == expected
        assert queue.occupancy_bytes(now) == sum(naive.left(now))
        assert queue.depth_packets(now) == len(naive.left(now))
    assert queue.drops == dropped


def test_the_papers_data_packet_holds_an_800_gbps_link_for_41780_ps() -> None:
    queue = OutputQueue(800 * 10**9, None, gap_bytes=20)
    assert queue.offer(0, 4158) == 41_580
    assert queue.offer(0, 64) == 41_780 + 640
    assert queue.last_start_ps == 41_780


def test_a_packet_has_left_at_its_departure_and_makes_room() -> None:
    queue = OutputQueue(8 * 10**9, 100)
    departure = queue.offer(0, 100)
    assert departure is not None
    assert queue.offer(departure - 1, 100) is None
    assert queue.offer(departure, 100) == 2 * departure


def test_rate_in_packets_ignores_sizes() -> None:
    queue = OutputQueue(None, None, rate_pps=1000)
    assert [queue.offer(0, size) for size in (64, 9000)] == [PS // 1000, 2 * PS // 1000]


def test_without_a_rate_packets_leave_at_once() -> None:
    queue = OutputQueue(None, 10)
    assert [queue.offer(5, 10), queue.offer(5, 10)] == [5, 5]
    assert queue.occupancy_bytes(5) == 0


@pytest.mark.parametrize(
    "rates", [{"rate_bps": 0}, {"rate_bps": 1, "rate_pps": 1}, {"rate_bps": None, "rate_pps": -1}]
)
def test_impossible_rates_are_refused(rates: dict[str, int | None]) -> None:
    with pytest.raises(ValueError, match="rate"):
        OutputQueue(rates.get("rate_bps"), None, rate_pps=rates.get("rate_pps"))


def test_a_rate_holds_for_what_starts_from_then_on_foreseen_or_not() -> None:
    foreseen = OutputQueue(8 * 10**9, None)
    foreseen.foresee_rates([(100_000, 4 * 10**9), (500_000, 8 * 10**9)])
    assert [foreseen.offer(0, 100) for _ in range(4)] == [100_000, 300_000, 500_000, 600_000]

    queue = OutputQueue(8 * 10**9, None)
    assert [queue.offer(0, 100) for _ in range(3)] == [100_000, 200_000, 300_000]
    # The second packet starts at this very instant; a moment later it would have begun.
    moved = [(100_000, 300_000), (300_000, 500_000)]
    assert queue.set_rate_bps(100_000, 4 * 10**9) == moved
    assert queue.occupancy_bytes(299_999) == 200
    assert queue.set_rate_bps(300_001, 8 * 10**9) == []
    assert queue.offer(300_001, 100) == 600_000
    assert queue.set_rate_bps(300_001, 4 * 10**9) == [(500_000, 700_000)]
