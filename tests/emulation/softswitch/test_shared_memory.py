"""Buffers that share a switch's memory: bytes that come in go out again, all of them."""

import random

import pytest

from tests.python_network.shared import SharedBuffer, SharedMemory, SharedQueue

SIZE = 20_000
HEADROOM = 5_000
PACKETS = (64, 1500, 4096)


def test_what_has_come_in_and_gone_out_leaves_nothing() -> None:
    draw = random.Random(1)
    memory = SharedMemory(size=SIZE, alpha=1 << 15)
    buffers = [
        SharedBuffer(SIZE + HEADROOM, pause_above=SIZE, resume_at=SIZE, memory=memory)
        for _ in range(3)
    ]
    waiting: list[tuple[SharedBuffer, int]] = []
    most_over = 0

    for _ in range(2000):
        buffer, size = draw.choice(buffers), draw.choice(PACKETS)
        if draw.random() < 0.6 and buffer.has_room(size):
            buffer.take(size, port=0)
            waiting.append((buffer, size))
        elif waiting:
            buffer, size = waiting.pop(draw.randrange(len(waiting)))
            buffer.give_back(size, port=0)

        # Each byte is in the memory or in a headroom.
        assert sum(sharer.held for sharer in buffers) == sum(size for _, size in waiting)
        assert memory.held == sum(sharer.held - sharer.over for sharer in buffers)
        assert 0 <= memory.held <= SIZE
        assert all(0 <= sharer.over <= HEADROOM for sharer in buffers)
        most_over = max(most_over, *(sharer.over for sharer in buffers))

    # The headroom was needed.
    assert most_over > 0
    for buffer, size in waiting:
        buffer.give_back(size, port=0)

    assert memory.held == 0
    assert [(sharer.held, sharer.over) for sharer in buffers] == [(0, 0)] * 3


@pytest.mark.parametrize(
    ("alpha", "held", "beside", "size", "is_taken"),
    [
        # Half of the free bytes: 3,334 of 6,668; the queue has 3,332 of its 3,334.
        (0.5, 3_332, 0, 2, True),
        (0.5, 3_332, 0, 3, False),
        (0.5, 3_333, 0, 1, False),
        (0.5, 0, 3_333, 3_333, True),
        (0.5, 0, 3_333, 3_334, False),
        (1, 2_000, 3_000, 3_000, True),
        (1, 2_000, 3_000, 3_001, False),
        # Eight times the free bytes is more than are free: all of them.
        (8, 7_000, 0, 3_000, True),
        (8, 7_000, 0, 3_001, False),
        (8, 4_000, 3_000, 3_000, True),
        (8, 4_000, 3_000, 3_001, False),
    ],
)
def test_a_queue_takes_alpha_times_what_is_free_to_the_byte(
    alpha: float, held: int, beside: int, size: int, is_taken: bool
) -> None:
    memory = SharedMemory(10_000, alpha=round(alpha * 2**16))
    queue, neighbour = (SharedQueue(10**9, memory) for _ in range(2))
    for filled_queue, before in ((queue, held), (neighbour, beside)):
        assert before == 0 or filled_queue.offer(0, before)

    assert bool(queue.offer(0, size)) == is_taken
