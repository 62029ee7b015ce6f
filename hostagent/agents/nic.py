"""A host's link on a real interface: the model's rate, gap and latency in front of a packet socket.

The scheduler makes the software late. Departures are therefore dated by the model (when the link
was free and the flow due), and only a departure that is late by more than a packet's time on the
wire counts as a new start: lateness does not add up from packet to packet, and no burst catches up.
"""

import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from fattree.experiment.model import Scenario
from fattree.routes.slow_links import FULL
from fattree.shape.topology import Level
from fattree.units import PS_PER_SECOND
from hostagent.agents.process import inside
from hostagent.endpoint import Endpoint, MisdeliveryError, StalePacketError
from hostagent.pause_frames import is_control, quanta_of
from hostagent.transports.state import NEVER

# Of <linux/if_ether.h>, <linux/if_packet.h> and <asm-generic/socket.h>.
ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_IGNORE_OUTGOING = 23
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33

# Room for about a thousand data packets of 4 KiB while the agent serves its other hosts.
BUFFER_BYTES = 4 << 20

# Jumbo frames of 9,000 bytes, and headers.
FRAME_BYTES = 9_200

# The time of 512 bits (IEEE 802.3, annex 31D).
QUANTUM_BYTES = 64

# A flood at one host must not keep the agent from the deadlines of other hosts.
BATCH = 64


@dataclass(slots=True)
class Counts:
    """Counts of the frames at a host's link.

    `refused` were not accepted by the kernel, `missed` not taken from it in time; `stale` are of
    earlier runs, `foreign` not this host's. Control frames count in `control` alone; `paused_ps` is
    the time for which they have kept the host from sending.
    """

    data_sent: int = 0
    acks_sent: int = 0
    received: int = 0
    refused: int = 0
    missed: int = 0
    stale: int = 0
    foreign: int = 0
    control: int = 0
    paused_ps: int = 0


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """The scenario's figures of a host's link: latency and quantum, in which pauses are counted.

    `sizes` are the sizes of full data packets and of ACKs.
    """

    latency_ps: int
    quantum_ps: int
    sizes: tuple[int, int]
    gap_bytes: int
    rate_bps: int

    def on_wire_ps(self, is_ack: bool, less: int = 0) -> int:
        """Return how long a packet is being sent that is `less` bytes shorter than its class."""
        return self._sending_ps(self.sizes[is_ack] - less)

    def slot_ps(self, is_ack: bool, less: int = 0) -> int:
        """Return how long a packet holds the link, with its gap."""
        return self._sending_ps(self.sizes[is_ack] - less + self.gap_bytes)

    def _sending_ps(self, size: int) -> int:
        # Rounded up, as in `Scenario.tx_ps`.
        return -(-size * 8 * PS_PER_SECOND // self.rate_bps)


def link_times(scenario: Scenario, share: float = FULL) -> LinkTimes:
    """Return the figures of a host's link that carries a share of its rate."""
    return LinkTimes(
        scenario.latency_ps,
        # Of the link's own rate, however slow it is for a while.
        quantum_ps=scenario.tx_ps(QUANTUM_BYTES),
        sizes=(scenario.data_bytes, scenario.ack_bytes),
        gap_bytes=scenario.packets.gap_bytes,
        rate_bps=scenario.link_bps(Level.HOST, share),
    )


class Nic:
    """One host: its rules (`endpoint`), its link's timing, its socket.

    `clock` is the run's time in ps.
    """

    __slots__ = (
        "_free_ps",
        "_is_halted",
        "_latest_ps",
        "_now_ps",
        "_paused_until_ps",
        "_settled_ps",
        "_wire",
        "clock",
        "counts",
        "endpoint",
        "socket",
        "times",
    )

    def __init__(
        self, link: socket.socket, endpoint: Endpoint, times: LinkTimes, clock: Callable[[], int]
    ) -> None:
        self.socket = link
        self.endpoint = endpoint
        self.times = times
        self._latest_ps = times.slot_ps(is_ack=False)
        self.clock = clock
        self.counts = Counts()
        self._wire: deque[tuple[int, bytes]] = deque()
        self._free_ps = 0
        self._now_ps = 0
        self._paused_until_ps = self._settled_ps = 0
        self._is_halted = False

    def due_ps(self) -> int:
        """Return when `act` is next due, NEVER if not before a packet arrives."""
        due = NEVER if self._is_halted else min(self.endpoint.timer_ps(), self._sendable_ps())
        return min(due, self._wire[0][0]) if self._wire else due

    def act(self) -> None:
        """Start packets that are due, and hand over packets after their last bit's arrival."""
        # A start that is late by at most a slot is dated when it was due, so that the rate is the
        # model's. A later start begins now: missed slots are not caught up.
        now = self.clock()
        # Computations end at their due times, too, so that flows after them are not late twice.
        while not self._is_halted and (ended_ps := self.endpoint.timer_ps()) <= now:
            self._now_ps = max(self._now_ps, ended_ps)
            self.endpoint.elapse(self._now_ps)

        while not self._is_halted and (due := max(self._sendable_ps(), self._now_ps)) <= now:
            self._start(due if now - due <= self._latest_ps else now)

        while self._wire and self._wire[0][0] <= now:
            self._hand_over(self._wire.popleft()[1])

    def _sendable_ps(self) -> int:
        """Return from when on the next packet may start."""
        return max(self._free_ps, self._paused_until_ps, self.endpoint.wake_ps())

    def halt(self) -> None:
        """Start no more packets; packets on the wire arrive."""
        self._is_halted = True

    def _start(self, start_ps: int) -> None:
        # The endpoint's time never runs backwards, though starts are dated back.
        self._now_ps = start_ps
        departure = self.endpoint.send(start_ps)
        if departure is None:
            return

        size = departure.is_ack, departure.less
        held_ps = max(self.times.slot_ps(*size), self.endpoint.kept_ps(*size))
        self._free_ps = start_ps + held_ps
        arrival_ps = start_ps + self.times.on_wire_ps(*size) + self.times.latency_ps
        self._wire.append((arrival_ps, departure.frame))

        if departure.is_ack:
            self.counts.acks_sent += 1
        else:
            self.counts.data_sent += 1

    def _hand_over(self, frame: bytes) -> None:
        try:
            self.socket.send(frame)
        except OSError:
            self.counts.refused += 1

    def receive(self) -> bool:
        """Take in the socket's frames, a batch at most; return whether more may wait."""
        for _ in range(BATCH):
            try:
                frame = self.socket.recv(FRAME_BYTES)
            except OSError:
                return False

            self._now_ps = max(self._now_ps, self.clock())
            if is_control(frame):
                self._heed(frame)
                continue

            try:
                self.endpoint.receive(self._now_ps, frame)
                self.counts.received += 1
            except StalePacketError:
                self.counts.stale += 1
            except MisdeliveryError:
                self.counts.foreign += 1

        return True

    def _heed(self, frame: bytes) -> None:
        """Start no packet during a pause; packets on the wire arrive."""
        self.counts.control += 1
        quanta = quanta_of(frame)
        if quanta is not None:
            self._settle()
            self._paused_until_ps = self._settled_ps + quanta * self.times.quantum_ps

    def _settle(self) -> None:
        """Count the time for which the host was paused up to now."""
        now = self.clock()
        self.counts.paused_ps += max(0, min(now, self._paused_until_ps) - self._settled_ps)
        self._settled_ps = now

    def final_counts(self) -> Counts:
        """Return the counts up to now, with the kernel's drops since the last call."""
        self._settle()
        # Reading resets the kernel's two counters, packets and drops (packet(7)).
        dropped = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self.counts.missed += dropped
        return self.counts


def open_link(pid: int, interface: str) -> socket.socket:
    """Open a packet socket on an interface in the network namespace of a process.

    Raises OSError.
    """
    # Protocol 0, "none": before the bind nothing arrives from any interface (packet(7)). FORCE
    # passes over rmem_max and wmem_max.
    with inside(pid):
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        link.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        link.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
        link.bind((interface, ETH_P_ALL))

    link.setblocking(False)
    return link
