"""A port of the process: interface, queues, delay, counters."""

from __future__ import annotations

import errno
import socket
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ofan_p4.softswitch.base.units import PS_PER_US
from ofan_p4.softswitch.control.switch import Pending
from ofan_p4.softswitch.daemon.gates import Gate
from ofan_p4.softswitch.daemon.options import DEFAULT_DEPTH, Options
from ofan_p4.softswitch.daemon.pcap import PcapFile
from ofan_p4.softswitch.daemon.rings import Ring
from ofan_p4.softswitch.daemon.sockets import (
    hardware_address,
    interface_index,
    kernel_drops,
    open_interface,
    receive,
    send,
)
from ofan_p4.softswitch.native import burst_code
from ofan_p4.softswitch.ports.pausable import NEVER, Buffer, PausableQueue
from ofan_p4.softswitch.ports.queue import OutputQueue, Passage

# A port has a field of the module's name.
RawSocket = socket.socket
_IN_RING = {
    "rx_packets": burst_code.RX_PACKETS,
    "rx_bytes": burst_code.RX_BYTES,
    "tx_packets": burst_code.TX_PACKETS,
    "tx_bytes": burst_code.TX_BYTES,
    "tx_failed": burst_code.TX_FAILED,
}


@dataclass(slots=True)
class PortCounts:
    """A port's counters: frames and bytes.

    `tx_no_buffers` are those of `tx_failed` for which the kernel had no buffers: it counts them
    once more, as drops of the interface. `cut_frames` were longer than a link takes and have been
    cut into `rx_packets` here, because the host has left that to its interface.

    Control frames are in none of these, but in `control_sent`, `control_received` and, those among
    them that say nothing that is understood, `control_malformed`; `pauses` is how often the port
    has paused the link that comes in by it.
    """

    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0
    tx_failed: int = 0
    tx_no_buffers: int = 0
    kernel_drops: int = 0
    cut_frames: int = 0
    priority_drops: int = 0
    waiting_drops: int = 0
    pauses: int = 0
    control_sent: int = 0
    control_received: int = 0
    control_malformed: int = 0
    control_refused: int = 0


class Waiting(NamedTuple):
    """A copy in a queue, its way through that, and the buffer in which its bytes are, if any."""

    pending: Pending
    passage: Passage
    buffer: Buffer | None


@dataclass(slots=True, eq=False)
class Line:
    """The copies of a priority that wait at a port, in the order in which they leave.

    `queue` has the times at which they may leave; `due_ps` is the time to look at the first copy:
    `BLOCKED` if all wait for the interface, `NEVER` while no departure is foreseen.
    """

    queue: OutputQueue
    waiting: deque[Waiting] = field(default_factory=deque)
    due_ps: int = NEVER


BLOCKED = -1


@dataclass(slots=True, eq=False)
class Port:
    """One port. A queue without rate sends at once, and holds packets that the interface refuses.

    Each queue has its line. Where ports pause, `gates` have the queues too, and the buffers of
    arriving packets.
    """

    number: int
    name: str
    socket: socket.socket
    queues: tuple[OutputQueue, ...]
    is_immediate: bool
    delay_ps: int = 0
    gates: tuple[Gate, ...] = ()
    address: bytes = bytes(6)
    is_up: bool = True
    counts: PortCounts = field(default_factory=PortCounts)
    pcap_in: PcapFile | None = None
    pcap_out: PcapFile | None = None
    ring: Ring | None = None
    # Frames that the interface has refused.
    stuck: deque[bytes] = field(default_factory=deque)
    is_retrying: bool = False
    # The kernel's number of the interface that the socket is bound to, 0 when it is gone.
    index: int = 0
    lines: tuple[Line, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = tuple(map(Line, self.queues))

    @property
    def is_plain(self) -> bool:
        """Whether frames leave at once and unseen, so that machine code may send them."""
        return self.is_immediate and not self.delay_ps and self.pcap_in is None

    @property
    def is_blocked(self) -> bool:
        """Whether the interface takes no more for the moment."""
        return bool(self.stuck) or (self.ring is not None and not self.ring.has_room)

    @property
    def takes(self) -> bool:
        """Whether the interface takes a frame now."""
        if not self.is_blocked:
            return True

        # A ring may be full of frames that the kernel has not been asked to send yet.
        if not self.is_retrying:
            self.push()

        return not self.is_blocked

    def receive(self) -> list[bytes]:
        """Return the next frame, cut where its host has left that to us (`offloads`).

        BlockingIOError if nothing has arrived.
        """
        frames = receive(self.socket) if self.ring is None else self.ring.take()
        if len(frames) != 1:
            self.counts.cut_frames += bool(frames)
            # A frame that could be given to no program.
            self.counts.kernel_drops += not frames

        return frames

    def push(self) -> bool:
        """Send again the frames that the interface has not taken; return whether all are gone."""
        refused = self.stuck
        self.stuck = deque()
        for frame in refused:
            self.transmit(frame)

        with suppress(OSError):
            return (self.ring is None or self.ring.flush()) and not self.stuck

        # The interface is down: its frames are lost, and counted.
        return True

    def transmit(self, frame: bytes) -> None:
        """Send a frame now; where the interface does not take it, keep it or count that."""
        counts = self.counts
        try:
            self._put(frame)
        # Full for the moment: kept, and first in line when there is room.
        except BlockingIOError:
            self.stuck.append(frame)
            return
        except (OSError, ValueError) as error:
            counts.tx_failed += 1
            # With a full transmit queue of the kernel; it counts the frame as well.
            counts.tx_no_buffers += getattr(error, "errno", 0) == errno.ENOBUFS
            return

        # A ring counts for itself.
        if self.ring is None:
            counts.tx_packets += 1
            counts.tx_bytes += len(frame)

        if self.pcap_out is not None:
            self.pcap_out.write(frame)

    def _put(self, frame: bytes) -> None:
        if self.stuck:
            raise BlockingIOError
        if self.ring is None:
            send(self.socket, frame)
        else:
            self.ring.put(frame)

    def tell(self, frame: bytes) -> bool:
        """Send a control frame before all waiting frames; return whether there was room for it."""
        try:
            send(self.socket, frame)
        except BlockingIOError:
            return False
        # The interface is down; or the kernel loses the frame.
        except OSError as error:
            self.counts.control_refused += error.errno == errno.ENOBUFS
            return True

        self.counts.control_sent += 1
        if self.pcap_out is not None:
            self.pcap_out.write(frame)

        return True

    def heard(self, frame: bytes) -> None:
        """Count a control frame that has arrived."""
        self.counts.control_received += 1
        if self.pcap_in is not None:
            self.pcap_in.write(frame)

    def received(self, frame: bytes) -> None:
        """Count a frame that has arrived."""
        counts = self.counts
        counts.rx_packets += 1
        counts.rx_bytes += len(frame)

        if self.pcap_in is not None:
            self.pcap_in.write(frame)

    def statistics(self, now_ps: int) -> dict[str, int | str | bool]:
        """Return the counters for the statistics socket, with packets that wait at this moment."""
        # Reading resets the kernel's count.
        if self.index:
            self.counts.kernel_drops += kernel_drops(self.socket)

        counts = {name: getattr(self.counts, name) for name in PortCounts.__slots__}
        if self.ring is not None:
            # Frames that machine code has moved.
            for name, word in _IN_RING.items():
                counts[name] += int(self.ring.words[word])

        drops = sum(queue.drops for queue in self.queues)
        waiting = sum(queue.occupancy_bytes(now_ps) for queue in self.queues)

        return {
            "interface": self.name,
            "up": self.is_up,
            "ring": self.ring is not None,
            "queue_drops": drops,
            "queue_bytes": waiting,
            # The largest maximum of the queues.
            "max_queue_bytes": max(queue.max_bytes for queue in self.queues),
            "paused_ps": sum(gate.paused_ps(now_ps) for gate in self.gates),
            **counts,
        }

    def forsake(self) -> None:
        """Give up an interface that has been deleted; frames for it fail from now on."""
        if not self.index:
            return

        self.index = 0
        with suppress(OSError):
            self.counts.kernel_drops += kernel_drops(self.socket)

        # The first answer is that it is gone; behind it are frames that had arrived before.
        for _ in range(2):
            with suppress(OSError):
                while True:
                    self.counts.kernel_drops += len(self.receive())

        self.counts.tx_failed += len(self.stuck)
        self.stuck.clear()
        if self.ring is not None:
            for name, word in _IN_RING.items():
                moved = int(self.ring.words[word])
                setattr(self.counts, name, getattr(self.counts, name) + moved)

            self.ring.words[:] = 0
            self.ring.close()
            self.ring = None

    def follow(self, sock: RawSocket, index: int) -> None:
        """Go on with an interface that has been made anew under the old name."""
        self.socket.close()
        self.socket = sock
        self.index = index
        self.address = hardware_address(sock)

    def close(self) -> None:
        """Close the socket and the files."""
        if self.ring is not None:
            self.ring.close()

        self.socket.close()
        for file in (self.pcap_in, self.pcap_out):
            if file is not None:
                file.close()


def open_port(options: Options, number: int, name: str) -> Port:
    """Open the interface of a port and set up its queues."""
    rate_bps = options.rate_bps.of(number) or None
    rate_pps = options.rate_pps.of(number) or None
    gates = _gates(options, number, rate_bps)
    queues: list[OutputQueue] = [gate.queue for gate in gates]
    queues = queues or [
        _queue(options, number, rate_bps, rate_pps) for _ in range(options.priority_queues)
    ]
    port = Port(
        number,
        name,
        open_interface(name),
        tuple(queues),
        is_immediate=rate_bps is None and rate_pps is None,
        index=interface_index(name),
        gates=gates,
    )

    port.address = hardware_address(port.socket)
    port.delay_ps = (options.delay_us.of(number) or 0) * PS_PER_US
    if options.pcap is not None:
        port.pcap_in, port.pcap_out = (
            PcapFile(Path(options.pcap) / f"{name}_{way}.pcap") for way in ("in", "out")
        )

    return port


def _gates(options: Options, number: int, rate_bps: int | None) -> tuple[Gate, ...]:
    """Return the queues and buffers of a port that pauses, a pair for every priority."""
    pfc = options.pfc.of(number)
    if pfc is None or rate_bps is None:
        return ()

    gap_bytes = options.gap_bytes.of(number) or 0
    return tuple(
        Gate(rate_bps, PausableQueue(rate_bps, gap_bytes), Buffer(*pfc), options.pfc_watchdog)
        for _ in range(options.priority_queues)
    )


def _queue(
    options: Options, number: int, rate_bps: int | None, rate_pps: int | None
) -> OutputQueue:
    depth_bytes = options.depth_bytes.of(number)
    depth_packets = options.depth_packets.of(number)
    # As BMv2, unless a limit is given.
    if depth_bytes is None and depth_packets is None:
        depth_packets = DEFAULT_DEPTH

    return OutputQueue(
        rate_bps,
        capacity_bytes=depth_bytes,
        capacity_packets=depth_packets,
        gap_bytes=options.gap_bytes.of(number) or 0,
        rate_pps=rate_pps,
    )
