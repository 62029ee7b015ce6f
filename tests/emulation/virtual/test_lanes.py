"""A port that trims: who goes before whom, and when, in numbers worked out by hand."""

from emulation.virtual.lanes import LaneQueue
from emulation.virtual.ports import Port
from emulation.virtual.wires import Wire
from fattree.experiment import Fabric, Scenario, Transport

# 800 Gb/s: 10 ps a byte, so 1,000 bytes and a gap of 20 take 10,200 ps, and 64 bytes 840 ps.
RATE = 800 * 10**9


def queue(capacity: int = 3_000) -> LaneQueue:
    return LaneQueue(RATE, capacity, gap_bytes=20)


def test_a_header_goes_behind_what_is_being_sent_and_before_what_waits() -> None:
    lane_queue = queue()
    first, second, third = (lane_queue.offer(0, 1_000) for _ in range(3))
    assert first and second and third
    assert lane_queue.offer(0, 1_000) is None

    hurried = lane_queue.hurry(5_000, 64)
    assert hurried is not None
    header, longer = hurried
    assert (header.start_ps, header.departure_ps) == (10_200, 10_840)
    assert [each.departure_ps for each in (first, second, third)] == [10_000, 21_040, 31_240]
    assert longer == 840 * 2_000

    # Another one behind it; one that comes at the very instant of a start is too late for that.
    again = lane_queue.hurry(6_000, 64)
    assert again is not None and again[0].start_ps == 11_040
    late = lane_queue.hurry(11_880, 64)
    assert late is not None and late[0].start_ps == second.departure_ps + 200
    assert (second.start_ps, third.start_ps) == (11_880, 22_920)


def test_headers_wait_for_the_gap_and_for_nothing_else() -> None:
    lane_queue = queue()
    lane_queue.offer(0, 1_000)
    hurried = lane_queue.hurry(10_100, 64)
    assert hurried is not None and hurried[0].start_ps == 10_200
    hurried = lane_queue.hurry(50_000, 64)
    assert hurried is not None and hurried[0].start_ps == 50_000
    behind = lane_queue.offer(50_000, 1_000)
    assert behind is not None and behind.start_ps == 50_840


def test_the_lane_has_room_of_its_own() -> None:
    lane_queue = queue(capacity=128)
    assert lane_queue.hurry(0, 64) and lane_queue.hurry(0, 64)
    assert lane_queue.hurry(0, 64) is None
    assert lane_queue.occupancy_bytes(0) == 0 and lane_queue.offer(0, 128) is not None
    # The first has left.
    assert lane_queue.hurry(640, 64) is not None


def test_a_port_cuts_data_that_find_no_room_and_drops_acks() -> None:
    scenario = Scenario(fabric=Fabric(queue_bytes=5_000), transport=Transport(trimming=True))
    port = Port(scenario, "E>A", far=1, far_port=1, wire=Wire())
    whole = port.offer(0, 4_158)
    cut = port.offer(0, 4_158)
    assert whole is not None and not whole.is_urgent
    assert cut is not None and cut.is_urgent and cut.size == scenario.ack_bytes
    while port.offer(0, scenario.ack_bytes):
        pass
    assert (port.trims, port.queue.drops) == (1, 1)
    nack = port.offer(0, scenario.ack_bytes, is_urgent=True)
    assert nack is not None and nack.start_ps == cut.start_ps + 840
    assert (port.trims, port.queue.drops) == (1, 1)
