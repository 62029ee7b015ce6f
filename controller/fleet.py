"""The controller's sessions with all switches of a fabric: opened, written to, and brought back.

A switch that runs our program already is read back and gets only what is missing; any other gets
the program first. A switch that stops to answer, or that another controller takes over, is left
out, and holds up nobody; when it is back it is read back again. So nothing that a switch has
acknowledged is ever sent twice, and nobody is touched because of somebody else.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from controller.entries import Entries
from controller.errors import CallError, NotPrimaryError, SwitchError, UnreachableError
from controller.fabric_controller import FabricController, Step
from controller.pipeline import Pipeline
from controller.session import DEADLINE_S, Session, Transport
from fattree.addressing import device_id, switch_name

# Threads that wait for switches: their answers take longer than making the messages.
WRITERS = 8
# Short: a switch that does not answer must not keep the others waiting for long.
REOPEN_DEADLINE_S = 2.0
# ForwardingPipelineConfig.Cookie is a uint64.
COOKIE_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """How to get at the switches: their program, a transport to each, whether it is worth a try."""

    device_config: bytes
    pipeline: Pipeline
    connect: Callable[[int], Transport]
    is_reachable: Callable[[int], bool] = lambda _switch: True
    election_id: int = 1

    @property
    def cookie(self) -> int:
        """Return the number by which a switch tells that it runs this very program."""
        # Both halves: the same program with other ids in its P4Info is another contract.
        digest = hashlib.sha256(
            self.device_config + self.pipeline.p4info.SerializeToString(deterministic=True)
        ).digest()
        return int.from_bytes(digest[:COOKIE_BYTES], "big")


class Fleet:
    """All switches of a fabric, as one controller sees them."""

    def __init__(
        self, controller: FabricController, access: Access, writers: int = WRITERS
    ) -> None:
        self.sessions: list[Session] = []
        self.lost: dict[int, SwitchError] = {}
        self.on_packet_in: Callable[[int, int, bytes], None] = lambda _switch, _port, _frame: None
        self._tree = controller.scenario.tree
        self._controller = controller
        self.access = access
        self._cookie = access.cookie
        self._transports: list[Transport] = []
        self._pool = ThreadPoolExecutor(writers)

    def open(self) -> None:
        """Open a session with every switch, and see what it runs and holds; raises SwitchError."""
        switches = range(self._tree.switches)
        self._transports = [self.access.connect(switch) for switch in switches]
        self.sessions = [self._session(switch) for switch in switches]

        # Switches are asked side by side, but the controller, which is not made for threads, learns
        # of them one after the other.
        for switch, entries in enumerate(self._pool.map(self._take_over, switches)):
            if entries:
                self._controller.adopt(switch, entries)

    def close(self) -> None:
        """End all sessions; the switches go on forwarding."""
        self._pool.shutdown()
        for session in self.sessions:
            session.close()

        for transport in self._transports:
            transport.close()

    def write(self, steps: Iterable[Step]) -> None:
        """Send steps: phase after phase, in order within a switch, different switches side by side.

        A switch that cannot be written to is `lost`, and the others go on.
        """
        # A switch may have been read back since its steps were planned. Then `poll` has brought it
        # to a plan that includes what they were for.
        current = [step for step in steps if step.epoch == self._controller.epoch(step.switch)]
        for phase in sorted({step.phase for step in current}):
            per_switch: dict[int, list[Step]] = {}
            for step in current:
                if step.phase is phase and step.switch not in self.lost:
                    per_switch.setdefault(step.switch, []).append(step)

            # The loop ends when all have acknowledged, and only then the next phase begins.
            for switch, error in self._pool.map(self._write_one, per_switch.items()):
                if error is not None:
                    self.lost[switch] = error

    def poll(self, now_ps: int) -> dict[int, int]:
        """Look after all switches.

        Return those that are back, with the number of updates that they needed.

        Raises CallError where a switch refuses what it needs even after it has been read back.
        """
        # Not overwritten: why a switch was lost says more than that it is still gone.
        for switch, session in enumerate(self.sessions):
            if not session.is_open:
                self.lost.setdefault(
                    switch, UnreachableError(session.name, "the connection is gone")
                )
            elif not session.is_primary:
                self.lost.setdefault(
                    switch, NotPrimaryError(session.name, "another controller has taken it over")
                )

        back = {}
        for switch in sorted(self.lost):
            updates = self._recover(now_ps, switch)
            if updates is not None:
                back[switch] = updates

        return back

    def _recover(self, now_ps: int, switch: int) -> int | None:
        """Try to bring a lost switch back to the plan.

        Return the number of updates, None where it is still lost.
        """
        try:
            if not self._is_ours_again(switch):
                return None

            # What it holds is anybody's guess: some of a batch may be in force, or all is gone.
            self._controller.adopt(switch, self._take_over(switch))
            steps = self._controller.restore(now_ps, switch)
            for step in steps:
                self.sessions[switch].write(step.changes)
        except (UnreachableError, NotPrimaryError):
            return None

        del self.lost[switch]
        return sum(len(step.changes) for step in steps)

    def _is_ours_again(self, switch: int) -> bool:
        """Return whether this controller is in charge, opening or claiming a session if need be."""
        session = self.sessions[switch]
        if not session.is_open:
            if not self.access.is_reachable(switch):
                return False

            self._reopen(switch)
        # Only where nobody is in charge: two controllers would outbid each other for ever.
        elif session.is_without_primary:
            session.reclaim(REOPEN_DEADLINE_S)

        return self.sessions[switch].is_primary

    def _reopen(self, switch: int) -> None:
        with suppress(SwitchError):
            self.sessions[switch].close()

        self._transports[switch].close()
        self._transports[switch] = self.access.connect(switch)
        self.sessions[switch] = self._session(switch)
        self.sessions[switch].open(REOPEN_DEADLINE_S)

    def _session(self, switch: int) -> Session:
        access = self.access
        name = switch_name(self._tree, switch)
        session = Session(
            self._transports[switch],
            pipeline=access.pipeline,
            device_id=device_id(switch),
            name=name,
            election_id=access.election_id,
        )

        # Looked up when a packet comes: a detector may be set after the sessions were opened.
        session.on_packet_in = lambda port, frame: self.on_packet_in(switch, port, frame)
        return session

    def _take_over(self, switch: int) -> Entries:
        """Return what a switch holds.

        One that does not run our program gets it, and holds nothing.
        """
        session = self.sessions[switch]
        if not session.is_open:
            session.open(DEADLINE_S)

        if session.cookie() == self._cookie:
            return {
                (entry.table, entry.key): (entry.action, entry.arguments)
                for entry in session.read()
            }

        session.push(self.access.device_config, self._cookie)
        return {}

    def _write_one(self, work: tuple[int, Sequence[Step]]) -> tuple[int, SwitchError | None]:
        switch, steps = work
        try:
            for step in steps:
                if not self.sessions[switch].is_open:
                    raise UnreachableError(self.sessions[switch].name, "the connection is gone")

                self.sessions[switch].write(step.changes)
        except (UnreachableError, NotPrimaryError, CallError) as error:
            return switch, error

        return switch, None
