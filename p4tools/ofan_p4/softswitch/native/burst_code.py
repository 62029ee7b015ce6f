"""The loop that moves frames from the ring of one port to the rings of others, in machine code.

It goes as long as all is simple: a frame for one port that sends at once and has room. Anything
else (a VLAN tag beside the frame, a checksum that its host has left to the interface, a frame that
is longer than its place, requests, multicast, the CPU port, a full ring) it hands back at the point
that it has reached, and Python goes on from there.

    i64 burst(ports, index, of_port, ctx, ingress, egress, state, now_ps, budget, growth, report)

`ports` has PORT_WORDS words a port, `of_port` the index plus 1 of every port number, 0 for ports
that cannot be sent to here; the result is an end of those below.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.build import load_word, word, words_at
from ofan_p4.softswitch.native.shared import DROPPED
from ofan_p4.softswitch.native.values import I16, I32, I64, POINTER, Builder

BURST = "burst"

# The ends of a burst: no more frames; the budget is used up; a frame that Python must take out of
# the ring; a frame after ingress that needs more than a port; a frame after egress that does.
EMPTY, MORE, ODD, PASSED, ASKED_EGRESS = range(5)

# The words of a port. A ring is its address, frames, bytes a frame, and the next frame.
(
    NUMBER,
    RX_BASE,
    RX_FRAMES,
    RX_SIZE,
    RX_NEXT,
    TX_BASE,
    TX_FRAMES,
    TX_SIZE,
    TX_NEXT,
    TX_MOST,
    RX_PACKETS,
    RX_BYTES,
    TX_PACKETS,
    TX_BYTES,
    TX_FAILED,
    TX_PENDING,
) = range(16)
PORT_WORDS = 16

# The words of a report: frames taken, dropped at ingress, dropped at egress, transmitted; of a
# frame that is handed back its address and length, and, after egress, the result and the address of
# the frame that leaves; and, of turns, at which port they have ended, and whether other sockets
# have something.
TAKEN, DROPPED_INGRESS, DROPPED_EGRESS, TRANSMITTED, FRAME, LENGTH, RESULT, OUT = range(8)
PORT, READABLE = 8, 9
REPORT_WORDS = 10

PORT_NUMBERS = 512
US = 10**6

# Of the kernel's if_packet.h: struct tpacket2_hdr, and the states of a frame.
STATUS, LEN, SNAPLEN, MAC = 0, 4, 8, 12
TP_STATUS_USER = 1
TP_STATUS_COPY = 1 << 1
TP_STATUS_CSUMNOTREADY = 1 << 3
TP_STATUS_VLAN_VALID = 1 << 4
TP_STATUS_SEND_REQUEST = 1
# Behind it, and in front of the frame, struct virtio_net_hdr: zeros, because nothing is missing.
VIRTIO_HEADER = 10
TX_HEADER = 32 + VIRTIO_HEADER


def add_burst(module: ir.Module) -> ir.Function:
    """Return the function, added to a module."""
    pointer = I64.as_pointer()
    kind = ir.FunctionType(
        I64, [pointer, I64, pointer, I64, I64, I64, POINTER, I64, I64, I64, pointer]
    )
    burst = ir.Function(module, kind, name=BURST)
    _Burst(burst).build()

    return burst


class _Burst:
    def __init__(self, function: ir.Function) -> None:
        self._function = function
        (
            self._ports,
            index,
            self._of_port,
            self._context,
            self._ingress,
            self._egress,
            self._state,
            self._now,
            self._budget,
            self._growth,
            self._report,
        ) = function.args
        self._b = Builder(function.append_basic_block("entry"))
        self._port = self._at(index)
        self._head = function.append_basic_block("head")

    def build(self) -> None:
        """Write the loop."""
        b = self._b
        taken = b.gep(self._report, [word(TAKEN)])
        limit = b.add(b.load(taken), self._budget)
        b.branch(self._head)
        b.position_at_end(self._head)

        # The kernel hands a frame over by its status, and only then the rest may be read: an atomic
        # load.
        header = self._frame(self._port, RX_BASE, RX_NEXT, RX_SIZE)
        status = self._atomic(header, STATUS)
        with b.if_then(self._is_zero(b.and_(status, I32(TP_STATUS_USER)))):
            b.ret(word(EMPTY))

        with b.if_then(b.icmp_unsigned(">=", b.load(taken), limit)):
            b.ret(word(MORE))

        whole = self._number(header, LEN, I32)
        length = self._number(header, SNAPLEN, I32)
        # Longer than its place in the ring: Python has the whole frame from the socket.
        is_cut = b.icmp_unsigned("!=", whole, length)
        odd = I32(TP_STATUS_VLAN_VALID | TP_STATUS_CSUMNOTREADY)
        is_odd = b.icmp_unsigned("!=", b.and_(status, odd), I32(0))
        with b.if_then(b.or_(is_cut, is_odd)):
            b.ret(word(ODD))

        b.store(b.add(b.load(taken), word(1)), taken)
        data = b.gep(header, [self._number(header, MAC, I16)])
        self._count(self._port, RX_PACKETS, word(1))
        self._count(self._port, RX_BYTES, length)
        # Reported in advance: wherever the burst ends, Python goes on with this frame.
        b.store(b.ptrtoint(data, I64), b.gep(self._report, [word(FRAME)]))
        b.store(length, b.gep(self._report, [word(LENGTH)]))
        self._process(header, data, length)

    def _process(self, header: Any, data: Any, length: Any) -> None:
        b = self._b
        kind = ir.FunctionType(I64, [I64, POINTER, *[I64] * 5, POINTER]).as_pointer()
        number = load_word(b, self._port, NUMBER)
        asked = b.call(
            b.inttoptr(self._ingress, kind),
            [self._context, data, length, length, number, length, self._now, self._state],
        )
        spec, group, priority, growth = (self._outcome(i) for i in range(4))
        is_more = b.or_(
            b.icmp_unsigned("!=", asked, word(0)), b.icmp_unsigned("!=", group, word(0))
        )
        with b.if_then(is_more):
            b.store(asked, b.gep(self._report, [word(RESULT)]))
            b.ret(word(PASSED))

        drop = load_word(b, words_at(b, self._context), context.DROP)
        with b.if_then(b.icmp_unsigned("==", spec, drop)):
            self._add(DROPPED_INGRESS)
            self._release(header)

        # Without a branch: an unknown number reads the entry of port 0, and 0 replaces it.
        is_known = b.icmp_unsigned("<", spec, word(PORT_NUMBERS))
        safe = b.select(is_known, spec, word(0))
        entry = load_word(b, self._of_port, safe)
        entry = b.select(is_known, entry, word(0))
        with b.if_then(self._is_zero(entry)):
            b.store(word(0), b.gep(self._report, [word(RESULT)]))
            b.ret(word(PASSED))

        port = self._at(b.sub(entry, word(1)))
        slot = self._frame(port, TX_BASE, TX_NEXT, TX_SIZE)
        # Egress writes straight into the ring of the port, so that its longest frame must fit.
        capacity = b.sub(load_word(b, port, TX_SIZE), word(TX_HEADER))
        is_long = b.icmp_signed(">", b.add(length, self._growth), capacity)
        is_taken = b.icmp_unsigned("!=", self._atomic(slot, STATUS), I32(0))
        with b.if_then(b.or_(is_long, is_taken)):
            b.store(word(0), b.gep(self._report, [word(RESULT)]))
            b.ret(word(PASSED))

        self._send(
            header, data, length, port=port, slot=slot, spec=spec, priority=priority, growth=growth
        )

    def _send(
        self,
        header: Any,
        data: Any,
        length: Any,
        *,
        port: Any,
        slot: Any,
        spec: Any,
        priority: Any,
        growth: Any,
    ) -> None:
        b = self._b
        out = b.gep(slot, [word(TX_HEADER)])
        kind = ir.FunctionType(
            I64, [I64, POINTER, I64, I64, POINTER, *[I64] * 10, POINTER]
        ).as_pointer()
        zero = word(0)
        # Of a port that sends at once all queue metadata is 0.
        microseconds = b.udiv(self._now, word(US))
        size = b.call(
            b.inttoptr(self._egress, kind),
            [
                self._context,
                data,
                length,
                length,
                self._state,
                spec,
                priority,
                b.add(length, growth),
                zero,
                zero,
                self._now,
                microseconds,
                zero,
                zero,
                zero,
                out,
            ],
        )
        with b.if_then(b.icmp_signed("<", size, word(DROPPED))):
            b.store(size, b.gep(self._report, [word(RESULT)]))
            b.store(b.ptrtoint(out, I64), b.gep(self._report, [word(OUT)]))
            b.ret(word(ASKED_EGRESS))

        with b.if_then(b.icmp_signed("<", size, zero)):
            self._add(DROPPED_EGRESS)
            self._release(header)

        self._add(TRANSMITTED)
        # The kernel would refuse it, and count it nowhere.
        with b.if_then(b.icmp_signed(">", size, load_word(b, port, TX_MOST))):
            self._count(port, TX_FAILED, word(1))
            self._release(header)

        length_field = b.bitcast(b.gep(slot, [word(LEN)]), I32.as_pointer())
        b.store(b.trunc(b.add(size, word(VIRTIO_HEADER)), I32), length_field)
        status = b.bitcast(slot, I32.as_pointer())
        # Last of all: with this status the kernel may send the frame.
        b.store_atomic(I32(TP_STATUS_SEND_REQUEST), status, "release", 4)
        self._advance(port, TX_NEXT, TX_FRAMES)
        self._count(port, TX_PACKETS, word(1))
        self._count(port, TX_BYTES, size)
        self._count(port, TX_PENDING, word(1))
        self._release(header)
        # Every way has gone back to the head: code behind is never reached.
        b.unreachable()

    def _release(self, header: Any) -> None:
        """Give the frame back to the kernel and go on with the next frame."""
        b = self._b
        b.store_atomic(I32(0), b.bitcast(header, I32.as_pointer()), "release", 4)
        self._advance(self._port, RX_NEXT, RX_FRAMES)
        b.branch(self._head)
        b.position_at_end(self._function.append_basic_block("next"))

    def _at(self, index: Any) -> Any:
        return self._b.gep(self._ports, [self._b.mul(index, word(PORT_WORDS))])

    def _frame(self, port: Any, base: int, word_index: int, size: int) -> Any:
        b = self._b
        offset = b.mul(load_word(b, port, word_index), load_word(b, port, size))
        return b.inttoptr(b.add(load_word(b, port, base), offset), POINTER)

    def _atomic(self, header: Any, word_index: int) -> Any:
        b = self._b
        pointer = b.bitcast(b.gep(header, [word(word_index)]), I32.as_pointer())
        return b.load_atomic(pointer, "acquire", 4)

    def _number(self, header: Any, word_index: int, type_: ir.IntType) -> Any:
        b = self._b
        pointer = b.bitcast(b.gep(header, [word(word_index)]), type_.as_pointer())
        return b.zext(b.load(pointer), I64)

    def _outcome(self, index: int) -> Any:
        b = self._b
        pointer = b.bitcast(self._state, I32.as_pointer())
        value = b.load(b.gep(pointer, [word(index)]))
        # Growth alone may be negative.
        return b.sext(value, I64) if index == 3 else b.zext(value, I64)

    def _is_zero(self, value: Any) -> Any:
        return self._b.icmp_unsigned("==", value, ir.Constant(value.type, 0))

    def _add(self, word_index: int) -> None:
        self._count(self._report, word_index, word(1))

    def _count(self, base: Any, word_index: int, amount: Any) -> None:
        b = self._b
        pointer = b.gep(base, [word(word_index)])
        b.store(b.add(b.load(pointer), amount), pointer)

    def _advance(self, port: Any, word_index: int, frames: int) -> None:
        b = self._b
        pointer = b.gep(port, [word(word_index)])
        following = b.add(b.load(pointer), word(1))
        # Behind the last frame of a ring comes the first.
        is_end = b.icmp_unsigned("==", following, load_word(b, port, frames))
        b.store(b.select(is_end, word(0), following), pointer)
