"""The digest of a native run: its events as the virtual network hashes them.

The simulator keeps the beginning of every frame. What is behind it is as the host has written it,
so the frame is written once more, by `hostagent.packets`.
"""

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree import traffic
from fattree.experiment import Scenario
from hostagent.build import ends
from hostagent.own_packet import OwnFrames, scenario_packets
from hostagent.packets import AckFrames, DataFrames
from hostagent.state import Recovery
from sim.frames import (
    KIND_SHIFT,
    LEAVE_KIND,
    LOG_ACK,
    LOG_FRAME,
    LOG_LENGTH,
    LOG_PACKET,
    LOG_PLACE,
    LOG_TIME,
    LOWEST_MASK,
    NODE_SHIFT,
)
from sim.programmed import Programmed
from sim.state import ACK, MARKED

LOW_32 = (1 << 32) - 1
# A packet is seen at six places in a row, so its end need not be remembered for long.
MOST_ENDS = 1 << 16


class Written(NamedTuple):
    """What a host has written into a packet, as far as packets of a flow differ."""

    flow: int
    psn: int
    status: int
    label: int
    acknowledged: int


class EventLog:
    """The hash of all events of a run, which come in order."""

    def __init__(self, scenario: Scenario) -> None:
        self._hash = hashlib.sha256()
        self._scenario = scenario
        self._flows = traffic.flows(scenario)
        self._packets = scenario_packets(scenario)
        self._ecn_at = self._packets.forms.data.ip_at + 1
        self._cuts = [self._packets.forms.end(kind) for kind in range(2)]
        self._data: dict[int, DataFrames | OwnFrames] = {}
        self._acks: dict[int, AckFrames | OwnFrames] = {}
        self._ends: dict[Written, bytes] = {}

    @property
    def hexdigest(self) -> str:
        """Return the digest of all events so far."""
        return self._hash.hexdigest()

    def note(self, run: Programmed, rows: NDArray[np.int64]) -> None:
        """Take in events (rows of `sim.frames`)."""
        beginnings = np.ascontiguousarray(rows[:, LOG_FRAME:]).view(np.uint8)
        for row, beginning in zip(rows[:, :LOG_FRAME].tolist(), beginnings, strict=True):
            place = row[LOG_PLACE]
            kind = place >> KIND_SHIFT
            node = place >> NODE_SHIFT & LOW_32
            self._hash.update(
                b"%d %d %d %d " % (row[LOG_TIME], kind, node, place & (1 << NODE_SHIFT) - 1)
            )
            if kind == LEAVE_KIND:
                self._hash.update(beginning[: self._ecn_at].tobytes())
                continue

            end = self._end(run, _written(row))
            length = row[LOG_LENGTH] >> 32
            self._hash.update(beginning[: length - len(end)].tobytes())
            self._hash.update(end)

    def _end(self, run: Programmed, written: Written) -> bytes:
        """Return a packet without its headers as its host has written it."""
        if written not in self._ends:
            if len(self._ends) >= MOST_ENDS:
                self._ends.clear()

            frame = self._frame(run, written)
            self._ends[written] = frame[self._cuts[written.status & ACK] :]

        return self._ends[written]

    def _frame(self, run: Programmed, written: Written) -> bytes:
        flow, psn, status, label, acknowledged = written
        here, there = int(self._flows.source[flow]), int(self._flows.destination[flow])
        tree = self._scenario.tree
        if not status & ACK:
            if flow not in self._data:
                self._data[flow] = self._packets.data(ends(tree, here, there), flow)

            return self._data[flow].frame(label, psn)

        if flow not in self._acks:
            self._acks[flow] = self._packets.ack(ends(tree, there, here), flow)

        writer = self._acks[flow]
        total = acknowledged >> 32
        if run.world.rules.recovery != Recovery.SACK:
            return writer.frame(label, psn, bool(status & MARKED), total)

        # What had arrived when the ACK was made, in order of arrival.
        first = int(run.world.flows.table.log[flow])
        arrived = run.world.flows.arrivals[first : first + total].tolist()
        lowest = acknowledged & LOWEST_MASK
        sacked = sum(1 << each - lowest for each in arrived if each > lowest)
        return writer.frame(label, psn, bool(status & MARKED), lowest, sacked)


def _written(row: list[int]) -> Written:
    return Written(
        flow=row[LOG_PACKET] >> 32,
        psn=row[LOG_PACKET] & LOW_32,
        status=row[LOG_LENGTH] >> 16 & (ACK | MARKED),
        label=row[LOG_LENGTH] & 0xFFFF,
        acknowledged=row[LOG_ACK],
    )
