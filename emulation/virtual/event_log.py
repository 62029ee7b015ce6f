"""The events of a run, as the readable network has them: their digest, and captures of ports.

The simulator keeps the beginning of every frame. The rest is as the host has written it, so the
frame is written once more, by `hostagent.packets`.
"""

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.routes.demand import Demand
from hostagent.build import ends
from hostagent.own_packet import OwnFrames, scenario_packets
from hostagent.packets import AckFrames, DataFrames
from hostagent.transports.roce import PSN_MASK, SHARE_BITS
from hostagent.transports.state import Recovery
from sim.kernels.desk import HEED_KIND, KIND_SHIFT, LEAVE_KIND, LOG_FRAME, NODE_SHIFT
from sim.kernels.frames import LOWEST_MASK
from sim.kernels.receiving import share_in
from sim.kernels.state import ACK, ASKS, MARKED, PROBE, TRIMMED
from sim.programs.programmed import Programmed

LOW_32 = (1 << 32) - 1
# The bits of a row's LOG_LENGTH that a host has written (class, mark, label), and a probe's.
WRITTEN = (ACK | ASKS | MARKED | TRIMMED | PROBE) << 16 | 0xFFFF
# A control frame by a row's LOG_PACKET.
CONTROL_FRAMES = (b"resume", b"pause")
# A row's LOG_PACKET and LOG_ACK, and as much of its LOG_LENGTH.
Key = tuple[int, int, int]
# A packet is seen at six places in a row, so its end need not be remembered for long.
MOST_ENDS = 1 << 16


class Written(NamedTuple):
    """The values in a packet by its host, as far as packets of a flow differ."""

    flow: int
    psn: int
    status: int
    label: int
    acknowledged: int


class Frames:
    """The bytes of a run's packets, from rows of `sim.kernels.desk`."""

    def __init__(self, demand: Demand) -> None:
        self.packets = scenario_packets(demand.scenario)
        self._scenario = demand.scenario
        self._flows = demand.flows
        self._cuts = [self.packets.forms.end(kind) for kind in range(2)]
        # By flow and plane.
        self._data: dict[tuple[int, int], DataFrames | OwnFrames] = {}
        self._acks: dict[tuple[int, int], AckFrames | OwnFrames] = {}
        self._ends: dict[tuple[Key, int], bytes] = {}

    def whole(self, run: Programmed, beginning: bytes, key: Key, length: int) -> bytes:
        """Return a packet of this length, of which a row has the beginning."""
        # Nothing but zeros stands behind a probe's headers.
        if key[2] >> 16 & PROBE:
            return beginning[:length].ljust(length, b"\0")

        plane = self._plane(beginning)
        end = self._ends.get((key, plane)) or self._end(run, key, plane)
        return beginning[: length - len(end)] + end

    def _plane(self, beginning: bytes) -> int:
        """Return the plane of a packet, 0 where flows keep to theirs: an ICRC covers addresses."""
        if not self._scenario.fabric.is_drawn:
            return 0

        # The first header's source is the host, 10.pod.edge.host, also in a tunnel; IPv6 has these
        # bytes in the middle of its source.
        ip_at = self.packets.forms.data.ip_at
        pod = beginning[ip_at + (21 if beginning[ip_at] >> 4 == 6 else 13)]
        return pod // self._scenario.tree.pods_per_plane

    def _end(self, run: Programmed, key: Key, plane: int) -> bytes:
        if len(self._ends) >= MOST_ENDS:
            self._ends.clear()

        written = _written(key)
        frame = self._frame(run, written, plane)
        hidden = self.packets.forms[written.status & ACK].hidden
        end = frame[min(self._cuts[written.status & ACK], len(frame) - hidden) :]
        if written.status & (ACK | TRIMMED) == TRIMMED:
            end = end[: len(end) - self.packets.forms.trimmed(self._less(written))]

        self._ends[key, plane] = end
        return end

    def _less(self, written: Written) -> int:
        """Return by how many bytes a data packet is shorter than a full packet."""
        if written.psn + 1 != self._flows.packets[written.flow]:
            return 0

        return self._scenario.packets.payload_bytes - int(self._flows.last_bytes[written.flow])

    def _frame(self, run: Programmed, written: Written, plane: int) -> bytes:
        flow, psn, status, label, acknowledged = written
        source, destination = int(self._flows.source[flow]), int(self._flows.destination[flow])
        tree = self._scenario.tree
        if self._scenario.fabric.is_drawn:
            first = plane * tree.machines
            source = source % tree.machines + first
            destination = destination % tree.machines + first

        key = flow, plane
        if not status & ACK:
            if key not in self._data:
                self._data[key] = self.packets.data(ends(tree, source, destination), flow)

            return self._data[key].frame(
                label, psn, asks=bool(status & ASKS), less=self._less(written)
            )

        if key not in self._acks:
            self._acks[key] = self.packets.ack(ends(tree, destination, source), flow)

        writer = self._acks[key]
        total = acknowledged >> 32
        told, share_bits = 0, 0
        if run.world.rules.tells_share:
            told, share_bits = share_in(psn, total), SHARE_BITS
            psn, total = psn & PSN_MASK, total & PSN_MASK

        is_marked, is_nack = bool(status & MARKED), bool(status & TRIMMED)
        if run.world.rules.recovery != Recovery.SACK:
            return writer.frame(label, psn, is_marked, total, told, is_nack)

        # The packets that had arrived when the ACK was made, in order of arrival.
        first = int(run.world.flows.table.log[flow])
        arrived = run.world.flows.arrivals[first : first + total].tolist()
        lowest = acknowledged & LOWEST_MASK
        sacked = sum(1 << number - lowest for number in arrived if number > lowest)
        return writer.frame(label, psn, is_marked, lowest, sacked << share_bits | told, is_nack)


class EventLog:
    """The hash of all events of a run, which come in order."""

    def __init__(self, demand: Demand) -> None:
        self._hash = hashlib.sha256()
        self._frames = Frames(demand)
        self._ecn_at = self._frames.packets.forms.data.ip_at + 1

    @property
    def hexdigest(self) -> str:
        """Return the digest of all events so far."""
        return self._hash.hexdigest()

    def note(self, run: Programmed, rows: NDArray[np.int64]) -> None:
        """Take in events (rows of `sim.kernels.desk`)."""
        # As bytes and numbers of Python's, all at once: this loop takes longer than the packets.
        kept = 8 * (rows.shape[1] - LOG_FRAME)
        beginnings = np.ascontiguousarray(rows[:, LOG_FRAME:]).tobytes()
        pieces: list[bytes] = []
        offset = 0
        for time_ps, code, packet, acknowledged, size in rows[:, :LOG_FRAME].tolist():
            kind = code >> KIND_SHIFT
            node = code >> NODE_SHIFT & LOW_32
            pieces.append(b"%d %d %d %d " % (time_ps, kind, node, code & (1 << NODE_SHIFT) - 1))
            if kind == HEED_KIND:
                pieces.append(CONTROL_FRAMES[packet])
            elif kind == LEAVE_KIND:
                pieces.append(beginnings[offset : offset + self._ecn_at])
            else:
                pieces.append(
                    self._frames.whole(
                        run,
                        beginnings[offset : offset + kept],
                        (packet, acknowledged, size & WRITTEN),
                        length=size >> 32,
                    )
                )

            offset += kept

        self._hash.update(b"".join(pieces))


def _written(key: Key) -> Written:
    packet, acknowledged, size = key
    return Written(
        flow=packet >> 32,
        psn=packet & LOW_32,
        status=size >> 16,
        label=size & 0xFFFF,
        acknowledged=acknowledged,
    )
