"""Turn after turn in machine code: wait, let every port have a burst, have the kernel send.

A switch with little to do spends most of its time between frames: waking up, looking where
something has come, asking the kernel to send. From Python that costs several times the program
itself. Here Python is called only where it is needed: another socket has something, a timer is due,
a frame needs more than a burst can do, an interface has failed or takes no more.

    i64 turns(polled, count, ports, rings, first, of_port, ctx, ingress, egress, state,
              deadline_ns, start_ns, budget, growth, report, calls)

`polled` are `count` structs pollfd, the first `rings` of them those of `ports`; -1 in place of a
socket stands for a port without a ring. `first` is the port that has its turn first. The clocks are
in nanoseconds: `deadline_ns` of the monotonic clock (`NEVER` for none), packets see the time since
`start_ns`. `calls` has the addresses of `ppoll`, `clock_gettime` and `send`. The result is an end
of a burst, or an end below; the word `PORT` of the report is the port. Without a program (`ingress`
is 0) Python must take every frame out of its ring.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from ofan_p4.softswitch.native import burst_code
from ofan_p4.softswitch.native.build import counted, load_word, word
from ofan_p4.softswitch.native.values import I16, I32, I64, POINTER, Builder

TURNS = "turns"

# How turns end, beside the ends of a burst: another socket has something, or a signal has come; the
# deadline is over; an interface has failed; it has not taken all that it was given.
OTHERS, DUE, FAILED, UNSENT = range(burst_code.ASKED_EGRESS + 1, burst_code.ASKED_EGRESS + 5)

NEVER = -1

# Of the C library's headers: struct pollfd, struct timespec.
POLLED = np.dtype([("fd", np.int32), ("events", np.int16), ("found", np.int16)])
POLLIN = 1
FAILURES = 0x8 | 0x10 | 0x20
CLOCK_MONOTONIC = 1
NS_PER_S = 10**9
PS_PER_NS = 1000
MSG_DONTWAIT = 0x40


def library_calls() -> NDArray[np.int64]:
    """Return the addresses of the called functions of the C library, in the order of `calls`."""
    library = ctypes.CDLL(None)
    names = ("ppoll", "clock_gettime", "send")
    addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names]

    return np.array(addresses, dtype=np.int64)


def add_turns(module: ir.Module, burst: ir.Function) -> None:
    """Add the function to the module of `burst`."""
    pointer = I64.as_pointer()
    kind = ir.FunctionType(
        I64,
        [
            *(POINTER, I64, pointer, I64, I64, pointer),
            *(I64, I64, I64, POINTER),
            *(I64, I64, I64, I64, pointer, pointer),
        ],
    )
    _Turns(ir.Function(module, kind, name=TURNS), burst).build()


class _Turns:
    def __init__(self, function: ir.Function, burst: ir.Function) -> None:
        self._function = function
        self._burst = burst
        (
            self._polled,
            self._count,
            self._ports,
            self._rings,
            self._first,
            self._of_port,
            *self._program,
            self._deadline,
            self._start,
            self._budget,
            self._growth,
            self._report,
            self._calls,
        ) = function.args
        self._b = Builder(function.append_basic_block("entry"))
        self._time = self._b.alloca(I64, 2, name="time")

    def build(self) -> None:
        """Write the loop."""
        b = self._b
        # The port handed back to Python last is last in the first turn.
        first = b.alloca(I64)
        b.store(self._first, first)
        head = self._function.append_basic_block("turn")
        b.branch(head)
        b.position_at_end(head)

        # Frames that Python has put into rings go before the next frames come.
        self._send_all()
        self._wait()
        self._look_at_others()
        now_ns = self._clock()
        since_ps = b.mul(b.sub(now_ns, self._start), word(PS_PER_NS))

        with counted(b, self._rings) as (step, _):
            turned = b.add(b.load(first), step)
            is_past = b.icmp_unsigned(">=", turned, self._rings)
            self._serve(b.select(is_past, b.sub(turned, self._rings), turned), since_ps)

        b.store(word(0), first)
        self._send_all()
        readable = load_word(b, self._report, burst_code.READABLE)
        with b.if_then(b.icmp_unsigned("!=", readable, word(0))):
            b.ret(word(OTHERS))

        with b.if_then(self._is_over(now_ns)):
            b.ret(word(DUE))

        b.branch(head)

    def _wait(self) -> None:
        """Sleep until something has come or the deadline is over; a signal is Python's."""
        b = self._b
        pointer = I64.as_pointer()
        kind = ir.FunctionType(I32, [POINTER, I64, pointer, POINTER])
        remaining_ns = b.sub(self._deadline, self._clock())
        # After the deadline 0 remains, not less.
        remaining_ns = b.select(b.icmp_signed("<", remaining_ns, word(0)), word(0), remaining_ns)
        b.store(b.udiv(remaining_ns, word(NS_PER_S)), self._time)
        b.store(b.urem(remaining_ns, word(NS_PER_S)), b.gep(self._time, [word(1)]))

        is_endless = b.icmp_signed("==", self._deadline, word(NEVER))
        timeout = b.select(is_endless, pointer(None), self._time)
        result = b.call(self._library(0, kind), [self._polled, self._count, timeout, POINTER(None)])
        with b.if_then(b.icmp_signed("<", result, I32(0))):
            b.ret(word(OTHERS))

    def _look_at_others(self) -> None:
        """Note whether another socket has something: Python answers it however the turn ends."""
        b = self._b
        readable = b.gep(self._report, [word(burst_code.READABLE)])
        with counted(b, b.sub(self._count, self._rings)) as (index, _):
            events = self._found(b.add(self._rings, index))
            with b.if_then(b.icmp_unsigned("!=", events, I16(0))):
                b.store(word(1), readable)

    def _clock(self) -> Any:
        """Return the monotonic clock in nanoseconds."""
        b = self._b
        kind = ir.FunctionType(I32, [I32, I64.as_pointer()])
        b.call(self._library(1, kind), [I32(CLOCK_MONOTONIC), self._time])
        seconds = b.mul(load_word(b, self._time, 0), word(NS_PER_S))

        return b.add(seconds, load_word(b, self._time, 1))

    def _is_over(self, now_ns: Any) -> Any:
        b = self._b
        is_over = b.icmp_signed(">=", now_ns, self._deadline)
        return b.and_(is_over, b.icmp_signed("!=", self._deadline, word(NEVER)))

    def _serve(self, index: Any, since_ps: Any) -> None:
        """Let a port have a burst; frames that need more go back to Python."""
        b = self._b
        events = self._found(index)
        with b.if_then(b.icmp_unsigned("!=", events, I16(0))):
            b.store(index, b.gep(self._report, [word(burst_code.PORT)]))
            failed = b.and_(events, I16(FAILURES))
            with b.if_then(b.icmp_unsigned("!=", failed, I16(0))):
                b.ret(word(FAILED))

            _, ingress, *_ = self._program
            with b.if_then(b.icmp_unsigned("==", ingress, word(0))):
                b.ret(word(burst_code.ODD))

            end = b.call(
                self._burst,
                [
                    *(self._ports, index, self._of_port),
                    *self._program,
                    *(since_ps, self._budget, self._growth, self._report),
                ],
            )
            with b.if_then(b.icmp_unsigned(">", end, word(burst_code.MORE))):
                b.ret(end)

    def _send_all(self) -> None:
        with counted(self._b, self._rings) as (index, _):
            self._send(index)

    def _send(self, index: Any) -> None:
        """Have the kernel send a ring's frames; Python tries again frames that it has not taken."""
        b = self._b
        port = b.gep(self._ports, [b.mul(index, word(burst_code.PORT_WORDS))])
        pending = b.gep(port, [word(burst_code.TX_PENDING)])
        with b.if_then(b.icmp_unsigned("!=", b.load(pending), word(0))):
            kind = ir.FunctionType(I64, [I32, POINTER, I64, I32])
            sent = b.call(
                self._library(2, kind),
                [self._socket(index), POINTER(None), word(0), I32(MSG_DONTWAIT)],
            )
            # The frame that was put last goes last.
            frames = load_word(b, port, burst_code.TX_FRAMES)
            before = b.add(load_word(b, port, burst_code.TX_NEXT), b.sub(frames, word(1)))
            offset = b.mul(b.urem(before, frames), load_word(b, port, burst_code.TX_SIZE))
            status = b.inttoptr(
                b.add(load_word(b, port, burst_code.TX_BASE), offset), I32.as_pointer()
            )
            is_left = b.icmp_unsigned(
                "==", b.load_atomic(status, "acquire", 4), I32(burst_code.TP_STATUS_SEND_REQUEST)
            )
            is_refused = b.icmp_signed("<", sent, word(0))
            with b.if_then(b.or_(is_left, is_refused)):
                b.store(index, b.gep(self._report, [word(burst_code.PORT)]))
                b.ret(word(UNSENT))

            b.store(word(0), pending)

    def _found(self, index: Any) -> Any:
        b = self._b
        address = b.gep(self._polled, [b.add(b.mul(index, word(POLLED.itemsize)), word(6))])
        return b.load(b.bitcast(address, I16.as_pointer()))

    def _socket(self, index: Any) -> Any:
        b = self._b
        address = b.gep(self._polled, [b.mul(index, word(POLLED.itemsize))])
        return b.load(b.bitcast(address, I32.as_pointer()))

    def _library(self, index: int, kind: ir.FunctionType) -> Any:
        return self._b.inttoptr(load_word(self._b, self._calls, index), kind.as_pointer())
