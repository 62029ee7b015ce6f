"""The switch between its sockets (or its virtual network) and its pipeline.

A packet takes two calls, with the output queue between them: `ingress` parses it, runs the ingress
pipeline and returns its copies with their ports; `egress`, once a copy has left its queue, runs the
egress pipeline and the deparser. The caller owns queues and time, so a process on real sockets and
a network in virtual time drive the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ofan_p4.softswitch.base.requests import (
    EGRESS_CLONE,
    INGRESS_CLONE,
    NORMAL,
    RECIRCULATED,
    REPLICATION,
    RESUBMITTED,
    CloneRequest,
    EgressRequests,
    IngressRequests,
    Resume,
)
from ofan_p4.softswitch.control.pipeline import DROP_PORT, Engine, Pipeline
from ofan_p4.softswitch.control.trace import Walk
from ofan_p4.softswitch.state.replication import Replica, Replication

# A program that always resubmits must not hold up the switch for ever.
MAX_RESUBMISSIONS = 64


@dataclass(slots=True, eq=False)
class Pending:
    """A copy of a packet on its way from ingress to egress.

    The caller reads `egress_port`, `priority` and `length` (bytes, as
    `standard_metadata.packet_length` will show them in egress), and may set `length`,
    `enq_timestamp` (microseconds) and `enq_qdepth` (packets) when it enqueues it.
    """

    egress_port: int
    priority: int
    length: int
    pipeline: Pipeline
    state: tuple[Any, ...]
    ingress_port: int
    instance: int = NORMAL
    rid: int = 0
    truncate: int = 0
    enq_timestamp: int = 0
    enq_qdepth: int = 0


@dataclass(slots=True)
class Transmit:
    """A frame that leaves through a port."""

    port: int
    frame: bytes


@dataclass(slots=True)
class Counts:
    """Counts of the packets' ends; no packet disappears uncounted.

    received + copies made = transmitted + packet_ins + all the drops + those still between ingress
    and egress.
    """

    received: int = 0
    transmitted: int = 0
    packet_ins: int = 0
    copies: int = 0
    dropped_without_pipeline: int = 0
    dropped_by_ingress: int = 0
    dropped_by_egress: int = 0
    dropped_unknown_port: int = 0
    dropped_resubmit_loop: int = 0
    dropped_internal_error: int = 0


class Switch:
    """A v1model switch without queues and sockets.

    `clock` returns the time in picoseconds since the switch started; `random(low, high)` an
    integer, both ends included. A frame for `cpu_port` goes to `on_packet_in`, a digest to
    `on_digest(id, values)`, the text of a `log_msg` to `on_log`, every step of every packet to
    `walk`, if given.

    Nothing is lost outside of `counts`: packets that egress sends round again (egress-to-egress
    clones, recirculation) and packets injected by the controller wait in a backlog, which the
    caller collects with `take_requeued` after `egress` and after control traffic; the next
    `ingress` also returns whatever is still there. `on_requeued` is called when the controller has
    put something there.
    """

    def __init__(
        self,
        device_id: int,
        clock: Callable[[], int],
        random: Callable[[int, int], int],
        ports: Iterable[int],
        cpu_port: int | None = None,
        drop_port: int = DROP_PORT,
        walk: Walk | None = None,
        engine: Engine = "auto",
    ) -> None:
        self.engine = engine
        self.device_id = device_id
        self.clock = clock
        self.cpu_port = cpu_port
        self.counts = Counts()
        self.pipeline: Pipeline | None = None
        self.replication = Replication()
        self.on_packet_in: Callable[[bytes], None] = lambda _frame: None
        self.on_digest: Callable[[int, tuple[int, ...]], None] = lambda _digest, _values: None
        self.on_log: Callable[[str], None] = lambda _text: None
        self.on_requeued: Callable[[], None] = lambda: None
        self._random = random
        self._drop_port = drop_port
        self._walk = walk
        self._down: set[int] = set()
        # Down is not gone: a port that is down still takes packets, only selectors avoid it.
        self._ports = {*ports} | ({cpu_port} if cpu_port is not None else set())
        self._requeued: list[Pending] = []
        self._highest_unknown_port = 0

    @property
    def misdirected(self) -> tuple[int, int]:
        """Return how many packets were for ports that do not exist, and the highest of these."""
        return self.counts.dropped_unknown_port, self._highest_unknown_port

    def verify(self, source: bytes) -> Pipeline:
        """Return a pipeline made from BMv2 JSON, with its declared entries only.

        Raises PipelineError.
        """
        return Pipeline(
            source,
            random=self._random,
            is_up=self.is_up,
            drop_port=self._drop_port,
            walk=self._walk,
            has_port=self.has_port,
            engine=self.engine,
        )

    def commit(self, pipeline: Pipeline) -> None:
        """Forward with this pipeline from the next packet on.

        The replication engine starts empty.
        """
        pipeline.log = self.on_log
        self.pipeline = pipeline
        self.replication = Replication()

    def load(self, source: bytes) -> None:
        """Verify and commit BMv2 JSON."""
        self.commit(self.verify(source))

    def has_port(self, port: int) -> bool:
        """Return whether a port exists."""
        return port in self._ports

    def is_up(self, port: int) -> bool:
        """Return whether a port exists and is not marked down."""
        return port in self._ports and port not in self._down

    def set_port_status(self, port: int, up: bool) -> None:
        """Mark a port up or down; selectors leave out members that watch a port that is down."""
        (self._down.discard if up else self._down.add)(port)
        for profile in self.pipeline.profiles if self.pipeline else ():
            profile.refresh()

    def ingress(self, port: int, frame: bytes, length: int | None = None) -> list[Pending]:
        """Process a received frame up to the queues.

        `length` overrides its length as the program sees it.
        """
        self.counts.received += 1
        pending = self._ingress(port, frame, len(frame) if length is None else length, None)
        # The packets that have waited longest go first.
        return self.take_requeued() + pending if self._requeued else pending

    def passed(self, port: int, frame: bytes, asked: int) -> list[Pending]:
        """Go on with a frame that machine code has taken through ingress, and counted."""
        assert self.pipeline is not None and self.pipeline.functions is not None
        outcome = self.pipeline.functions.passed(asked, frame)
        pending = self._ingress(port, frame, len(frame), None, outcome)
        return self.take_requeued() + pending if self._requeued else pending

    def left(self, port: int, frame: bytes, result: int, out: int) -> list[Transmit]:
        """Go on with a frame that machine code has taken through egress, and not counted."""
        assert self.pipeline is not None and self.pipeline.functions is not None
        functions = self.pipeline.functions
        spec, _, priority, growth, _, state = functions.passed(0, frame)
        pending = Pending(
            spec,
            priority,
            length=len(frame) + growth,
            pipeline=self.pipeline,
            state=state,
            ingress_port=port,
        )
        return self._left(pending, *functions.left(result, frame, out))

    def take_requeued(self) -> list[Pending]:
        """Return, and forget, packets that want to be enqueued though no frame has come."""
        taken = self._requeued
        self._requeued = []
        return taken

    def packet_out(self, frame: bytes) -> None:
        """Process a frame from the controller as one received on the CPU port."""
        self.counts.received += 1
        self._requeued += self._ingress(self.cpu_port or 0, frame, len(frame), None)
        self.on_requeued()

    def egress(
        self, pending: Pending, deq_qdepth: int = 0, deq_timedelta_us: int = 0
    ) -> list[Transmit]:
        """Process a copy that has left its queue.

        `deq_qdepth` is the queue that it left behind, in packets.
        """
        port = pending.egress_port
        frame, requests = pending.pipeline.egress(
            pending.state,
            port,
            pending.priority,
            pending.length,
            pending.instance,
            pending.rid,
            self.clock(),
            pending.enq_timestamp,
            pending.enq_qdepth,
            deq_timedelta_us,
            deq_qdepth,
        )

        return self._left(pending, frame, requests)

    def _left(self, pending: Pending, frame: bytes | None, requests: Any) -> list[Transmit]:
        """Clone, recirculate, drop or transmit a frame after egress."""
        port = pending.egress_port
        if requests is not None and self._again(pending, frame, EgressRequests(*requests)):
            return []

        if frame is None:
            self.counts.dropped_by_egress += 1
            return []

        # A clone session truncates the departing frame, not egress's.
        if pending.truncate:
            frame = frame[: pending.truncate]

        if port == self.cpu_port:
            self.counts.packet_ins += 1
            self.on_packet_in(frame)
            return []

        self.counts.transmitted += 1
        return [Transmit(port, frame)]

    def _ingress(
        self,
        port: int,
        frame: bytes,
        length: int,
        resume: Resume | None,
        outcome: Any = None,
    ) -> list[Pending]:
        # `outcome` is the pipeline's result if it has run on the frame already.
        pipeline = self.pipeline
        if pipeline is None:
            self.counts.dropped_without_pipeline += 1
            return []

        now = self.clock()
        copies: list[Pending] = []
        for _ in range(MAX_RESUBMISSIONS):
            spec, group, priority, delta, requested, state = outcome or pipeline.ingress(
                frame, port, length, now, resume
            )
            outcome = None
            original = Pending(
                spec,
                priority,
                length=length + delta,
                pipeline=pipeline,
                state=state,
                ingress_port=port,
            )

            if requested is None:
                return (
                    copies + self._forward(original, group)
                    if copies or group
                    else self._unicast(original)
                )

            requests = IngressRequests(*requested)
            if requests.clone is not None:
                clone = CloneRequest(*requests.clone)
                again = Resume(INGRESS_CLONE, clone.field_list, requests.clone_values)
                # As BMv2: the frame as it came in, parsed again.
                *_, parsed = pipeline.ingress(frame, port, length, now, again)
                copy = Pending(
                    0,
                    priority=0,
                    length=length,
                    pipeline=pipeline,
                    state=parsed,
                    ingress_port=port,
                    instance=INGRESS_CLONE,
                )
                copies += self._clones(clone.session, copy)

            if requests.digest is not None:
                self.on_digest(requests.digest, requests.digest_values)

            if requests.resubmit is None:
                return copies + self._forward(original, group)

            resume = Resume(RESUBMITTED, requests.resubmit, requests.resubmit_values)

        self.counts.dropped_resubmit_loop += 1
        return copies

    def _forward(self, packet: Pending, group: int) -> list[Pending]:
        # A multicast group wins over egress_spec.
        if not group:
            return self._unicast(packet)

        packet.instance = REPLICATION
        replicas = self.replication.groups.get(group, ())
        # The packet itself is gone: n replicas are n - 1 more packets.
        self.counts.copies += len(replicas) - 1

        if not replicas:
            self.counts.dropped_by_ingress += 1
            self.counts.copies += 1

        return self._replicate(packet, replicas)

    def _unicast(self, packet: Pending) -> list[Pending]:
        port = packet.egress_port
        if port in self._ports:
            return [packet]

        if port == self._drop_port:
            self.counts.dropped_by_ingress += 1
        else:
            self.counts.dropped_unknown_port += 1
            self._highest_unknown_port = max(self._highest_unknown_port, port)

        return []

    def _clones(self, number: int, packet: Pending) -> list[Pending]:
        session = self.replication.sessions.get(number)
        # The session does not exist: no clone, as in BMv2.
        if session is None:
            return []

        self.counts.copies += len(session.replicas)
        packet.priority = session.priority
        packet.truncate = session.truncate

        return self._replicate(packet, session.replicas)

    def _replicate(self, packet: Pending, replicas: Sequence[Replica]) -> list[Pending]:
        copies: list[Pending] = []
        for replica in replicas:
            port, instance = replica.place(self.is_up)
            copy = Pending(
                port,
                priority=packet.priority,
                length=packet.length,
                pipeline=packet.pipeline,
                state=packet.state,
                ingress_port=packet.ingress_port,
                instance=packet.instance,
                rid=instance,
                truncate=packet.truncate,
            )

            copies += self._unicast(copy)

        return copies

    def _again(self, packet: Pending, frame: bytes | None, requests: EgressRequests) -> bool:
        """Serve egress-to-egress clones and recirculation.

        Return whether the packet itself has gone round again.
        """
        if requests.clone is not None:
            copy = Pending(
                0,
                priority=0,
                length=packet.length,
                pipeline=packet.pipeline,
                state=requests.clone_state,
                ingress_port=packet.ingress_port,
                instance=EGRESS_CLONE,
            )

            self._requeued += self._clones(CloneRequest(*requests.clone).session, copy)

        if requests.recirculate is None or frame is None:
            return False

        resume = Resume(RECIRCULATED, requests.recirculate, requests.recirculate_values)
        self._requeued += self._ingress(packet.ingress_port, frame, len(frame), resume)
        return True
