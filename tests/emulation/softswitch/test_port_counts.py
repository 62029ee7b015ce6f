"""A port's counts when its interface does not take a frame."""

from __future__ import annotations

import errno
import socket

import pytest

from ofan_p4.softswitch.daemon.ports import Port


class Refusing(socket.socket):
    """A socket on an interface that refuses every frame.

    The kernel's ENOBUFS cannot be had on demand.
    """

    def __init__(self, number: int) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.number = number

    def send(self, *_data: object) -> int:
        raise OSError(self.number, "refused")


@pytest.mark.parametrize(("number", "no_buffers"), [(errno.ENOBUFS, 1), (errno.ENETDOWN, 0)])
def test_frames_that_the_kernel_has_no_buffers_for_are_counted_apart(
    number: int, no_buffers: int
) -> None:
    port = Port(1, "x", Refusing(number), (), is_immediate=True)
    port.transmit(b"frame")

    assert (port.counts.tx_failed, port.counts.tx_no_buffers, port.counts.tx_packets) == (
        1,
        no_buffers,
        0,
    )

    port.socket.close()
