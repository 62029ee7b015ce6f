"""A port of the process: interface, queues, delay, counters."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass, field
from pathlib import Path

from emulation.softswitch.daemon.options import DEFAULT_DEPTH, Options
from emulation.softswitch.daemon.pcap import PcapFile
from emulation.softswitch.daemon.sockets import kernel_drops, open_interface
from emulation.softswitch.queue import OutputQueue
from emulation.softswitch.units import PS_PER_US


@dataclass(slots=True)
class PortCounts:
    """What a port has seen: frames, bytes, and the most bytes that one of its queues has held.

    `tx_no_buffers` are those of `tx_failed` for which the kernel had no buffers: it counts them
    once more, as drops of the interface.
    """

    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0
    tx_failed: int = 0
    tx_no_buffers: int = 0
    kernel_drops: int = 0
    priority_drops: int = 0
    max_queue_bytes: int = 0


@dataclass(slots=True, eq=False)
class Port:
    """One port. A queue without rate sends at once, so that it never holds a packet."""

    number: int
    name: str
    socket: socket.socket
    queues: tuple[OutputQueue, ...]
    is_immediate: bool
    delay_ps: int = 0
    is_up: bool = True
    counts: PortCounts = field(default_factory=PortCounts)
    pcap_in: PcapFile | None = None
    pcap_out: PcapFile | None = None

    def transmit(self, frame: bytes) -> None:
        """Send a frame now; where the interface does not take it, count that."""
        counts = self.counts
        try:
            self.socket.send(frame)
        except OSError as error:
            counts.tx_failed += 1
            # With a full transmit queue of the kernel; it counts the frame as well.
            counts.tx_no_buffers += error.errno == errno.ENOBUFS
            return

        counts.tx_packets += 1
        counts.tx_bytes += len(frame)
        if self.pcap_out is not None:
            self.pcap_out.write(frame)

    def received(self, frame: bytes) -> None:
        """Count a frame that has arrived."""
        counts = self.counts
        counts.rx_packets += 1
        counts.rx_bytes += len(frame)

        if self.pcap_in is not None:
            self.pcap_in.write(frame)

    def statistics(self, now_ps: int) -> dict[str, int | str | bool]:
        """Return the counters for the statistics socket, and what waits at this moment."""
        # Reading resets the kernel's count.
        self.counts.kernel_drops += kernel_drops(self.socket)
        counts = {name: getattr(self.counts, name) for name in PortCounts.__slots__}
        drops = sum(queue.drops for queue in self.queues)
        waiting = sum(queue.occupancy_bytes(now_ps) for queue in self.queues)

        return {
            "interface": self.name,
            "up": self.is_up,
            "queue_drops": drops,
            "queue_bytes": waiting,
            **counts,
        }

    def close(self) -> None:
        """Close the socket and the files."""
        self.socket.close()
        for file in (self.pcap_in, self.pcap_out):
            if file is not None:
                file.close()


def open_port(options: Options, number: int, name: str) -> Port:
    """Open the interface of a port and set up its queues."""
    rate_bps = options.rate_bps.of(number) or None
    rate_pps = options.rate_pps.of(number) or None
    queues = tuple(
        _queue(options, number, rate_bps, rate_pps) for _ in range(options.priority_queues)
    )
    port = Port(
        number,
        name,
        open_interface(name),
        queues,
        is_immediate=rate_bps is None and rate_pps is None,
    )

    port.delay_ps = (options.delay_us.of(number) or 0) * PS_PER_US
    if options.pcap is not None:
        port.pcap_in, port.pcap_out = (
            PcapFile(Path(options.pcap) / f"{name}_{way}.pcap") for way in ("in", "out")
        )

    return port


def _queue(
    options: Options, number: int, rate_bps: int | None, rate_pps: int | None
) -> OutputQueue:
    depth_bytes = options.depth_bytes.of(number)
    depth_packets = options.depth_packets.of(number)
    # As BMv2, unless one of the limits is given.
    if depth_bytes is None and depth_packets is None:
        depth_packets = DEFAULT_DEPTH

    return OutputQueue(
        rate_bps,
        capacity_bytes=depth_bytes,
        capacity_packets=depth_packets,
        gap_bytes=options.gap_bytes.of(number) or 0,
        rate_pps=rate_pps,
    )
