"""Turns wait, move frames and come back for Python's work; here with plain memory."""

import socket
import time
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.bursts import FRAME_BYTES, FRAMES, Nothing, ring
from ofan_p4.softswitch.daemon.bursts import BUDGET, turns_function
from ofan_p4.softswitch.native import burst_code, turn_code
from ofan_p4.softswitch.native.slots import address

FRAME = bytes(range(60))


class Ports:
    """Two ports, 1 and 2, in plain memory, each with a socket that signals its arrivals.

    The program of `Nothing` sends all frames to port 2.
    """

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in range(3)]
        self.near = [near for near, _ in pairs]
        self.far = [far for _, far in pairs]
        self.received = [ring([FRAME]) for _ in range(2)]
        self.sent = np.zeros_like(self.received[0])
        self.words = np.zeros((2, burst_code.PORT_WORDS), np.uint64)
        for number, row in enumerate(self.words, 1):
            row[burst_code.NUMBER] = number
            row[burst_code.RX_BASE : burst_code.RX_NEXT] = (
                address(self.received[number - 1]),
                FRAMES,
                2048,
            )
            row[burst_code.TX_BASE : burst_code.TX_NEXT] = (
                address(self.sent),
                FRAMES,
                FRAME_BYTES,
            )
            row[burst_code.TX_MOST] = 1500

        self.of_port = np.zeros(burst_code.PORT_NUMBERS, np.int64)
        self.polled = np.zeros(3, turn_code.POLLED)
        self.polled["fd"] = [end.fileno() for end in self.near]
        self.polled["events"] = turn_code.POLLIN
        self.report = np.zeros(burst_code.REPORT_WORDS, np.int64)
        self.calls = turn_code.library_calls()

    def arrive(self, port: int, count: int) -> None:
        """Put frames into the ring of a port, and have its socket say so."""
        self.received[port][:count, burst_code.STATUS] = burst_code.TP_STATUS_USER
        self.far[port].send(b"\0")

    def take_turns(
        self,
        *,
        deadline_ns: int = turn_code.NEVER,
        first: int = 0,
        program: tuple[int, int, int] = Nothing.addresses,
    ) -> int:
        """Return how turns end; the last of three sockets is no port's."""
        self.polled["found"] = 0
        return turns_function()(
            *(address(self.polled), 3, address(self.words), 2, first, address(self.of_port)),
            *(*program, Nothing.burst_state),
            *(deadline_ns, 0, BUDGET, Nothing.growth, address(self.report), address(self.calls)),
        )


@pytest.fixture
def ports() -> Iterator[Ports]:
    memory_ports = Ports()
    yield memory_ports

    for end in (*memory_ports.near, *memory_ports.far):
        end.close()


def test_a_deadline_ends_the_waiting_and_not_before(ports: Ports) -> None:
    deadline_ns = time.monotonic_ns() + 20_000_000

    assert ports.take_turns(deadline_ns=deadline_ns) == turn_code.DUE
    assert time.monotonic_ns() >= deadline_ns


def test_a_deadline_that_is_over_is_no_time_at_all(ports: Ports) -> None:
    assert ports.take_turns(deadline_ns=1) == turn_code.DUE


def test_another_socket_ends_the_waiting_and_is_named(ports: Ports) -> None:
    ports.far[2].send(b"\0")

    assert ports.take_turns() == turn_code.OTHERS
    assert (ports.polled["found"] != 0).tolist() == [False, False, True]


def test_frames_go_where_the_program_says_and_the_kernel_is_asked_to_send(ports: Ports) -> None:
    ports.of_port[2] = 2
    ports.arrive(0, count=5)

    # Nothing takes them out of plain memory.
    assert ports.take_turns() == turn_code.UNSENT
    assert ports.words[1][
        [burst_code.TX_NEXT, burst_code.TX_PACKETS, burst_code.TX_PENDING]
    ].tolist() == [5, 5, 5]
    assert ports.words[0][
        [burst_code.RX_NEXT, burst_code.RX_PACKETS, burst_code.RX_BYTES]
    ].tolist() == [5, 5, 300]
    assert ports.report[[burst_code.TAKEN, burst_code.TRANSMITTED]].tolist() == [5, 5]
    assert ports.sent[4, burst_code.TX_HEADER :][: len(FRAME)].tobytes() == FRAME


def test_frames_of_a_budget_leave_before_the_next_turn(ports: Ports) -> None:
    ports.of_port[2] = 2
    ports.arrive(0, count=BUDGET + 10)

    assert ports.take_turns() == turn_code.UNSENT
    assert ports.report[burst_code.TAKEN] == BUDGET


def test_no_port_keeps_others_waiting(ports: Ports) -> None:
    # Port 2 cannot be sent to from here, so that Python is asked at every frame.
    for port in (0, 1):
        ports.arrive(port, count=3)

    ended, first = [], 0
    for _ in range(4):
        assert ports.take_turns(first=first) == burst_code.PASSED
        port = int(ports.report[burst_code.PORT])
        ended.append(port)
        # Python gives back the slot of a frame that it has gone on with.
        ports.received[port][int(ports.words[port, burst_code.RX_NEXT]), burst_code.STATUS] = 0
        ports.words[port, burst_code.RX_NEXT] += np.uint64(1)
        first = (port + 1) % 2

    assert ended == [0, 1, 0, 1]


def test_a_socket_that_has_failed_is_told(ports: Ports) -> None:
    ports.far[1].close()

    assert ports.take_turns() == turn_code.FAILED
    assert ports.report[burst_code.PORT] == 1


def test_a_port_without_a_ring_is_left_out(ports: Ports) -> None:
    ports.polled[0] = (-1, 0, 0)
    ports.arrive(0, count=1)

    assert ports.take_turns(deadline_ns=1) == turn_code.DUE


def test_what_python_has_put_into_a_ring_goes_before_the_waiting(ports: Ports) -> None:
    ports.sent[0, burst_code.STATUS] = burst_code.TP_STATUS_SEND_REQUEST
    ports.words[1, [burst_code.TX_NEXT, burst_code.TX_PENDING]] = 1

    # With nothing else to do this would wait for ever.
    assert ports.take_turns() == turn_code.UNSENT
    assert ports.report[burst_code.PORT] == 1


def test_without_a_program_frames_are_left_to_python(ports: Ports) -> None:
    ports.of_port[2] = 2
    ports.arrive(1, count=3)

    assert ports.take_turns(program=(0, 0, 0)) == burst_code.ODD
    assert ports.report[[burst_code.PORT, burst_code.TAKEN]].tolist() == [1, 0]


def test_a_frame_for_python_hides_no_other_socket(ports: Ports) -> None:
    # Port 2 cannot be sent to from here.
    ports.arrive(0, count=1)
    ports.far[2].send(b"\0")

    assert ports.take_turns() == burst_code.PASSED
    assert ports.report[burst_code.READABLE] == 1
