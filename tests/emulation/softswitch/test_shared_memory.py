"""Buffers that share a switch's memory: what comes in goes out again, to the byte."""

import random

from ofan_p4.softswitch.shared import SharedBuffer, SharedMemory

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
        assert sum(each.held for each in buffers) == sum(size for _, size in waiting)
        assert memory.held == sum(each.held - each.over for each in buffers)
        assert 0 <= memory.held <= SIZE
        assert all(0 <= each.over <= HEADROOM for each in buffers)
        most_over = max(most_over, *(each.over for each in buffers))

    # The headroom was needed.
    assert most_over > 0
    for buffer, size in waiting:
        buffer.give_back(size, port=0)

    assert memory.held == 0
    assert [(each.held, each.over) for each in buffers] == [(0, 0)] * 3
