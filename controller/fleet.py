"""The controller's sessions with all switches of a fabric: opened, written to, and brought back.

A switch that already runs our program is read back, and gets missing entries only; any other switch
gets the program first. A switch that stops answering, or that another controller takes over, is
left out and does not delay the others; when it answers again it is read back again. So no update
that a switch has acknowledged is sent twice, and no switch is touched because of another switch.

Threads talk to switches side by side, and they alone wait. The controller, which is not made for
threads, and `lost` belong to the caller's thread.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from controller.entries import Entries
from controller.errors import CallError, NotPrimaryError, SwitchError, UnreachableError
from controller.fabric_controller import FabricController, Step
from controller.patience import late
from controller.pipeline import Pipeline
from controller.session import DEADLINE_S, Session, Transport
from fattree.shape.addressing import device_id, switch_name

# Threads that wait for switches: their answers take longer than making the messages.
WRITERS = 8
# After which a switch that does not answer is asked anew, by a thread that waits for it alone.
REOPEN_DEADLINE_S = 2.0
# Beside others who have answered long ago, a switch gets this long, or so much longer than they.
PATIENCE_S = 0.5
T = TypeVar("T")
# ForwardingPipelineConfig.Cookie is a uint64.
COOKIE_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Access to the switches: their program, a transport to each, and whether a try makes sense."""

    device_config: bytes
    pipeline: Pipeline
    connect: Callable[[int], Transport]
    is_reachable: Callable[[int], bool] = lambda _switch: True
    election_id: int = 1

    @property
    def cookie(self) -> int:
        """Return the number that identifies this program on a switch."""
        # Program and P4Info: the same program with other ids in its P4Info is another contract.
        digest = hashlib.sha256(
            self.device_config + self.pipeline.p4info.SerializeToString(deterministic=True)
        ).digest()
        return int.from_bytes(digest[:COOKIE_BYTES], "big")


@dataclass(slots=True, eq=False)
class _Mending:
    """A lost switch on its way back: it is read back, then gets its missing entries."""

    reading: "Future[Entries | SwitchError | None]"
    writing: "Future[SwitchError | None] | None" = None
    updates: int = 0


class Fleet:
    """All switches of a fabric, or some of them, as one controller sees them.

    `patience_s` is how long a switch may take longer than others to answer; the default is as long
    as any call may take at all.
    """

    def __init__(
        self,
        controller: FabricController,
        access: Access,
        writers: int = WRITERS,
        patience_s: float = DEADLINE_S,
        switches: Iterable[int] | None = None,
    ) -> None:
        self.sessions: dict[int, Session] = {}
        self.lost: dict[int, SwitchError] = {}
        self.on_packet_in: Callable[[int, int, bytes], None] = lambda _switch, _port, _frame: None
        self._tree = controller.scenario.tree
        self.switches = range(self._tree.switches) if switches is None else tuple(switches)
        self._controller = controller
        self.access = access
        self._cookie = access.cookie
        self.patience_s = patience_s
        self._transports: dict[int, Transport] = {}
        self._pool = ThreadPoolExecutor(writers)
        self._menders = ThreadPoolExecutor(writers)
        self._mending: dict[int, _Mending] = {}
        self._skipped: set[int] = set()

    def open(self) -> None:
        """Open a session with every switch, and read its program and entries.

        A switch that does not answer, or refuses, is `lost`.
        """
        self.connect()
        for switch, entries in self.ask(self._take_over, self.switches).items():
            if entries:
                self._controller.adopt(switch, entries)

    def connect(self) -> None:
        """Connect to every switch, to read from it: its controller stays in charge."""
        for switch in self.switches:
            self._connect(switch)

    def reconnect(self, switch: int) -> None:
        """Read from a switch again that was `lost`, over a new connection."""
        self._transports[switch].close()
        self._connect(switch)
        del self.lost[switch]

    def _connect(self, switch: int) -> None:
        self._transports[switch] = self.access.connect(switch)
        self.sessions[switch] = self._session(switch, election_id=self.access.election_id)

    def close(self) -> None:
        """End all sessions; the switches go on forwarding."""
        # Calls that still wait for an answer fail now, so that their threads end.
        self._hang_up()
        for pool in (self._pool, self._menders):
            pool.shutdown(cancel_futures=True)

        # A switch that was being mended has got new ones meanwhile.
        self._hang_up()

    def _hang_up(self) -> None:
        for session in self.sessions.values():
            session.close()

        for transport in self._transports.values():
            transport.close()

    def ask(self, call: Callable[[int], T], switches: Iterable[int]) -> dict[int, T]:
        """Call for many switches side by side; return the answers that came.

        The others are `lost`: those that refuse, and those that are late beside the others.
        """
        futures = {self._pool.submit(_tried, call, switch): switch for switch in switches}
        too_late = late(futures, self.patience_s)
        for future in too_late:
            switch = futures[future]
            self.lost[switch] = UnreachableError(
                self.sessions[switch].name, "it does not answer while others do"
            )
            # Ends the call, so that its thread is free for others.
            future.cancel()
            self._transports[switch].close()

        answers = {}
        for future in futures.keys() - too_late:
            answer = future.result()
            if isinstance(answer, SwitchError):
                self.lost[futures[future]] = answer
            else:
                answers[futures[future]] = answer

        return dict(sorted(answers.items()))

    def write(self, steps: Iterable[Step]) -> None:
        """Send steps: phase after phase, in order within a switch, different switches side by side.

        A switch that cannot be written to is `lost`, and the others go on.
        """
        # A switch may have been read back since its steps were planned. Then `poll` has brought it
        # to a plan that includes them.
        current = [step for step in steps if step.epoch == self._controller.epoch(step.switch)]
        for phase in sorted({step.phase for step in current}):
            per_switch: dict[int, list[Step]] = {}
            for step in current:
                if step.phase is phase:
                    per_switch.setdefault(step.switch, []).append(step)

            # A lost switch gets these steps when it is back.
            self._skipped |= per_switch.keys() & self.lost.keys()
            reached = per_switch.keys() - self.lost.keys()

            # It ends when all have acknowledged or are lost: only then the next phase begins.
            self.ask(lambda switch, of=per_switch: self._send(switch, of[switch]), sorted(reached))  # type: ignore[misc]

    def poll(self, now_ps: int) -> dict[int, int]:
        """Look after all switches, without waiting for any; to be called again and again.

        Return those that are back, with the number of updates that they needed.

        Raises CallError where a switch refuses its missing entries even after it was read back.
        """
        # The first reason stays: it explains more than that the switch is still lost.
        for switch, session in self.sessions.items():
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
            updates = self._mend(now_ps, switch)
            if updates is not None:
                back[switch] = updates

        return back

    def _mend(self, now_ps: int, switch: int) -> int | None:
        """Continue to bring a lost switch back to the plan.

        Return the number of updates, None where it is still lost.
        """
        mending = self._mending.get(switch)
        if mending is None:
            self._mending[switch] = _Mending(self._menders.submit(_tried, self._read_back, switch))
        elif mending.writing is not None:
            return self._written(switch, mending, mending.writing)
        elif mending.reading.done():
            self._plan(now_ps, switch, mending)

        return None

    def _read_back(self, switch: int) -> Entries | None:
        """Return the entries of a switch, None while it is not ours; waits for them."""
        return self._take_over(switch) if self._is_ours_again(switch) else None

    def _plan(self, now_ps: int, switch: int, mending: _Mending) -> None:
        """Send missing entries to a switch that was read back."""
        entries = mending.reading.result()
        if entries is None or isinstance(entries, UnreachableError | NotPrimaryError):
            del self._mending[switch]
            return

        if isinstance(entries, SwitchError):
            raise entries

        # Its entries are unknown: a part of a batch may be in force, or all may be gone.
        self._controller.adopt(switch, entries)
        steps = self._controller.restore(now_ps, switch)
        self._skipped.discard(switch)
        mending.updates = sum(len(step.changes) for step in steps)
        mending.writing = self._menders.submit(
            _tried, lambda number: self._send(number, steps), switch
        )

    def _written(
        self, switch: int, mending: _Mending, writing: "Future[SwitchError | None]"
    ) -> int | None:
        """Return how many updates have brought a switch back, None where it is still lost."""
        if not writing.done():
            return None

        del self._mending[switch]
        error = writing.result()
        if isinstance(error, CallError):
            raise error

        # The plan may have moved on while it was being written: then it is read back once more.
        if error is not None or switch in self._skipped:
            return None

        del self.lost[switch]
        return mending.updates

    def _is_ours_again(self, switch: int) -> bool:
        """Return whether this controller is in charge, opening or claiming a session if need be."""
        session = self.sessions[switch]
        if not session.is_open:
            if not self.access.is_reachable(switch):
                return False

            self._reopen(switch)
        # Only without a primary controller: two controllers would outbid each other for ever.
        elif session.is_without_primary:
            session.reclaim(REOPEN_DEADLINE_S)

        return self.sessions[switch].is_primary

    def _reopen(self, switch: int) -> None:
        old = self.sessions[switch]
        with suppress(SwitchError):
            old.close()

        self._transports[switch].close()
        self._transports[switch] = self.access.connect(switch)

        # A frozen switch would obey unread messages when it wakes, after it was read back. With a
        # higher election id it refuses all older messages (P4Runtime, "Client Arbitration").
        self.sessions[switch] = self._session(switch, election_id=old.election_id + 1)
        self.sessions[switch].open(REOPEN_DEADLINE_S)

    def _session(self, switch: int, election_id: int) -> Session:
        access = self.access
        name = switch_name(self._tree, switch)
        session = Session(
            self._transports[switch],
            pipeline=access.pipeline,
            device_id=device_id(switch),
            name=name,
            election_id=election_id,
        )

        # Looked up when a packet comes: a detector may be set after the sessions were opened.
        session.on_packet_in = lambda port, frame: self.on_packet_in(switch, port, frame)
        return session

    def _take_over(self, switch: int) -> Entries:
        """Return the entries of a switch.
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

    def _send(self, switch: int, steps: Sequence[Step]) -> None:
        """Write steps to one switch, in order."""
        session = self.sessions[switch]
        for step in steps:
            if not session.is_open:
                raise UnreachableError(session.name, "the connection is gone")

            session.write(step.changes)


def _tried(call: Callable[[int], T], switch: int) -> T | SwitchError:
    try:
        return call(switch)
    except SwitchError as error:
        return error
