"""One switch over P4Runtime, through a transport that gRPC or the caller's process provides."""

import time
from collections.abc import Callable, Iterable, Sequence
from threading import Event
from typing import Any, Protocol

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import GetForwardingPipelineConfigRequest as GetRequest
from p4.v1.p4runtime_pb2 import SetForwardingPipelineConfigRequest as SetRequest

from controller.entries import Change, Entry, Kind
from controller.errors import (
    OK,
    CallError,
    Failure,
    NotPrimaryError,
    RpcFailure,
    SwitchError,
    UnreachableError,
    WriteError,
)
from controller.pipeline import Pipeline

DEADLINE_S = 20.0
# The interval at which a waiting call checks that the stream is alive.
LOOK_S = 0.1

# google.rpc codes. An arbitration update has NOT_FOUND where no controller is primary, and
# ALREADY_EXISTS for a backup (P4Runtime specification, "Client Arbitration and Controller
# Replication").
CANCELLED = 1
DEADLINE_EXCEEDED = 4
NO_PRIMARY = 5
PERMISSION_DENIED = 7
FAILED_PRECONDITION = 9
UNAVAILABLE = 14
LOW_64_BITS = 2**64 - 1
Send = Callable[[p4runtime_pb2.StreamMessageResponse], None]


class Stream(Protocol):
    """An open stream channel."""

    @property
    def is_open(self) -> bool:
        """Return whether the other end is still there, as far as is known."""

    def receive(self, message: p4runtime_pb2.StreamMessageRequest) -> None:
        """Hand a message to the switch."""

    def close(self) -> None:
        """End the stream."""


class Transport(Protocol):
    """The calls of P4Runtime, on its messages; a refused call raises RpcFailure."""

    def write(self, request: p4runtime_pb2.WriteRequest) -> None:
        """Apply updates."""

    def read(self, request: p4runtime_pb2.ReadRequest) -> Iterable[p4runtime_pb2.ReadResponse]:
        """Return the selected entities."""

    def set_pipeline(self, request: SetRequest) -> None:
        """Set the forwarding pipeline."""

    def get_pipeline(self, request: Any) -> Any:
        """Return the forwarding pipeline."""

    def open_stream(self, send: Send) -> Stream:
        """Open a stream; `send` gets the switch's messages, possibly from another thread."""

    def close(self) -> None:
        """Close the connection."""


class InProcess:
    """The transport to a P4Runtime service in this process.

    `service` has the methods of `Transport` and fails with `failure`, an exception that has a code,
    a message and details.
    """

    def __init__(self, service: Any, failure: type[Exception]) -> None:
        self._service = service
        self._failure = failure

    def write(self, request: p4runtime_pb2.WriteRequest) -> None:
        """Apply updates."""
        self._call(self._service.write, request)

    def read(self, request: p4runtime_pb2.ReadRequest) -> Iterable[p4runtime_pb2.ReadResponse]:
        """Return the selected entities."""
        return list(self._call(self._service.read, request))

    def set_pipeline(self, request: SetRequest) -> None:
        """Set the forwarding pipeline."""
        self._call(self._service.set_pipeline, request)

    def get_pipeline(self, request: Any) -> Any:
        """Return the forwarding pipeline."""
        return self._call(self._service.get_pipeline, request)

    def open_stream(self, send: Send) -> Stream:
        """Open a stream."""
        return _InProcessStream(self._service.open_stream(send), self._call)

    def close(self) -> None:
        """Leave the service to its owner."""

    def _call(self, method: Callable[[Any], Any], request: Any) -> Any:
        try:
            return method(request)
        except self._failure as error:
            raise RpcFailure(error.code, error.message, error.details) from None  # type: ignore[attr-defined]


class _InProcessStream:
    def __init__(self, stream: Any, call: Callable[[Callable[[Any], Any], Any], Any]) -> None:
        self._stream = stream
        self._call = call
        self.is_open = True

    def receive(self, message: p4runtime_pb2.StreamMessageRequest) -> None:
        self._call(self._stream.receive, message)

    def close(self) -> None:
        self.is_open = False
        self._stream.close()


class Session:
    """A controller's session with one switch; `open` makes it the primary controller.

    Methods raise a `SwitchError`. `on_packet_in(ingress port, frame)` gets packet-ins, `on_refused`
    the errors of refused packet-outs, both on the transport's thread.
    """

    def __init__(
        self,
        transport: Transport,
        pipeline: Pipeline,
        device_id: int,
        name: str = "",
        election_id: int = 1,
    ) -> None:
        self.name = name or f"device {device_id}"
        self.pipeline = pipeline
        self.device_id = device_id
        self.on_packet_in: Callable[[int, bytes], None] = lambda _port, _frame: None
        self.on_refused: Callable[[CallError], None] = lambda _error: None
        self.election_id = election_id
        self._transport = transport
        self._stream: Stream | None = None
        self._answered = Event()
        self._arbitration: Any = None

    @property
    def is_open(self) -> bool:
        """Return whether the switch is still connected, as far as is known.

        A session that is not cannot be revived.
        """
        return self._stream is not None and self._stream.is_open

    @property
    def is_primary(self) -> bool:
        """Return whether the switch obeys this controller and no other."""
        return self._arbitration is not None and self._arbitration.status.code == OK

    @property
    def is_without_primary(self) -> bool:
        """Return whether the switch has no primary controller: the last one has left."""
        return self._arbitration is not None and self._arbitration.status.code == NO_PRIMARY

    def open(self, deadline_s: float = DEADLINE_S) -> None:
        """Become the primary controller of the switch.

        Raises NotPrimaryError or UnreachableError.
        """
        self._stream = self._guard(lambda: self._transport.open_stream(self._received))
        self._arbitrate(deadline_s)

    def reclaim(self, deadline_s: float = DEADLINE_S) -> None:
        """Become primary again if no controller is; NotPrimaryError if another was quicker."""
        # A switch reports the highest id that it has ever seen, and refuses controllers with a
        # lower id, even when the owner of the highest id is gone.
        self.election_id = max(self.election_id, _number(self._arbitration.election_id))

        # The answer to the first arbitration must not pass for the answer to this one.
        self._answered.clear()
        self._arbitrate(deadline_s)

    def _arbitrate(self, deadline_s: float) -> None:
        # Without a role, which is P4Runtime's default role: full access to the switch.
        message = p4runtime_pb2.StreamMessageRequest()
        message.arbitration.device_id = self.device_id
        self._elect(message.arbitration.election_id)
        self._send(message)

        self._await_answer(deadline_s)
        self._refuse_unless_primary()

    def _await_answer(self, deadline_s: float) -> None:
        # In slices: a stream that breaks meanwhile will never bring an answer.
        limit = time.monotonic() + deadline_s
        while not self._answered.wait(min(LOOK_S, deadline_s)):
            if not self.is_open or time.monotonic() >= limit:
                raise UnreachableError(self.name, f"no answer within {deadline_s:g} s")

    def _refuse_unless_primary(self) -> None:
        if not self.is_primary:
            raise NotPrimaryError(
                self.name, f"election id {self.election_id} lost against another controller's"
            )

    def _elect(self, election: p4runtime_pb2.Uint128) -> None:
        election.high = self.election_id >> 64
        election.low = self.election_id & LOW_64_BITS

    def close(self) -> None:
        """End the session; the switch keeps forwarding."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def push(self, device_config: bytes, cookie: int = 0) -> None:
        """Set the pipeline; its tables are empty afterwards."""
        # Not RECONCILE_AND_COMMIT: a switch that runs this very program is not sent it again
        # (`Fleet`), so that there is nothing to be kept.
        request = SetRequest(device_id=self.device_id, action=SetRequest.VERIFY_AND_COMMIT)
        self._elect(request.election_id)
        request.config.p4info.CopyFrom(self.pipeline.p4info)
        request.config.p4_device_config = device_config
        request.config.cookie.cookie = cookie
        self._guard(lambda: self._transport.set_pipeline(request))

    def cookie(self) -> int | None:
        """Return the cookie of the pipeline that the switch runs, None where it has none."""
        request = GetRequest(device_id=self.device_id, response_type=GetRequest.COOKIE_ONLY)
        try:
            config = self._guard(lambda: self._transport.get_pipeline(request)).config
        except CallError as error:
            # The specification's answer of a switch that has no pipeline yet.
            if error.code == FAILED_PRECONDITION:
                return None

            raise

        return int(config.cookie.cookie) if config.HasField("cookie") else None

    def write(self, changes: Sequence[Change]) -> None:
        """Apply a batch; raises WriteError with the refused updates.

        Nothing is sent for an empty batch.
        """
        if not changes:
            return

        # Atomicity stays at its default, CONTINUE_ON_ERROR: the only one that every switch must
        # know, and that BMv2 does. So it is the order that keeps schedules whole (`parts.Turn`).
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id)
        self._elect(request.election_id)
        for change in changes:
            # A deletion has the key alone.
            update = request.updates.add(type=int(change.kind))
            self.pipeline.fill(
                update.entity.table_entry, change.entry, change.kind is not Kind.DELETE
            )

        self._guard(lambda: self._transport.write(request), changes)

    def read(self, table: str | None = None) -> list[Entry]:
        """Return the entries of a table, or of all tables.

        Defaults that were never set are left out.
        """
        # Table by table: a request for all entries leaves default entries out, and a table without
        # a key has nothing else.
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id)
        for name in [table] if table else list(self.pipeline.tables):
            self.pipeline.select(request.entities.add().table_entry, name)

        answers = self._guard(lambda: list(self._transport.read(request)))
        return [
            self.pipeline.entry(entity.table_entry)
            for answer in answers
            for entity in answer.entities
        ]

    def read_register(self, name: str, index: int | None = None) -> list[int]:
        """Return the cells of a register array, or one of them; BMv2 refuses this call."""
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id)
        entry = request.entities.add().register_entry
        entry.register_id = self.pipeline.register(name).id

        if index is not None:
            entry.index.index = index

        # Answers may come in any order, and a switch may send several.
        answers = self._guard(lambda: list(self._transport.read(request)))
        cells = [entity.register_entry for answer in answers for entity in answer.entities]
        return [
            int.from_bytes(cell.data.bitstring, "big")
            for cell in sorted(cells, key=lambda cell: int(cell.index.index))
        ]

    def read_arrays(self) -> dict[str, list[tuple[int, ...]]]:
        """Return the cells of all registers and counters, by their whole names; BMv2 refuses this.

        A register's cell is its value, a counter's its packets and bytes.
        """
        info = self.pipeline.p4info
        names = {
            array.preamble.id: array.preamble.name for array in (*info.registers, *info.counters)
        }
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id)
        for register in info.registers:
            request.entities.add().register_entry.register_id = register.preamble.id

        for counter in info.counters:
            request.entities.add().counter_entry.counter_id = counter.preamble.id

        arrays: dict[str, dict[int, tuple[int, ...]]] = {name: {} for name in names.values()}
        for answer in self._guard(lambda: list(self._transport.read(request))):
            for entity in answer.entities:
                if entity.HasField("register_entry"):
                    cell = entity.register_entry
                    values: tuple[int, ...] = (int.from_bytes(cell.data.bitstring, "big"),)
                    arrays[names[cell.register_id]][cell.index.index] = values
                else:
                    cell = entity.counter_entry
                    values = (cell.data.packet_count, cell.data.byte_count)
                    arrays[names[cell.counter_id]][cell.index.index] = values

        return {name: [cells[index] for index in sorted(cells)] for name, cells in arrays.items()}

    def packet_out(self, port: int, frame: bytes) -> None:
        """Send a frame through a port of the switch."""
        message = p4runtime_pb2.StreamMessageRequest()
        message.packet.payload = frame
        for number, value in self.pipeline.packet_out(port):
            message.packet.metadata.add(metadata_id=number, value=value)

        self._send(message)

    def _send(self, message: p4runtime_pb2.StreamMessageRequest) -> None:
        if self._stream is None:
            raise UnreachableError(self.name, "the session is not open")

        stream = self._stream
        self._guard(lambda: stream.receive(message))

    def _received(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        match message.WhichOneof("update"):
            # First the answer, then the signal: another thread may wait for it. A switch also sends
            # an arbitration when another controller becomes primary (`is_primary`).
            case "arbitration":
                self._arbitration = message.arbitration
                self._answered.set()
            case "packet":
                self.on_packet_in(
                    self.pipeline.ingress_port(message.packet), message.packet.payload
                )
            case "error":
                self.on_refused(
                    CallError(self.name, message.error.canonical_code, message.error.message)
                )

    def _guard(self, call: Callable[[], Any], changes: Sequence[Change] = ()) -> Any:
        try:
            return call()
        except RpcFailure as failure:
            raise self._error(failure, changes) from None

    def _error(self, failure: RpcFailure, changes: Sequence[Change]) -> SwitchError:
        # The codes of gRPC without an answer, or after the connection was closed.
        if failure.code in (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED):
            return UnreachableError(self.name, failure.message)

        # A switch that obeys this controller means something else by it.
        if failure.code == PERMISSION_DENIED and not self.is_primary:
            return NotPrimaryError(self.name, "another controller has taken it over")

        refused = unwrap(failure, changes)
        if refused:
            return WriteError(self.name, failure.code, refused, len(changes))

        return CallError(self.name, failure.code, failure.message)


def _number(election: p4runtime_pb2.Uint128) -> int:
    return int(election.high) << 64 | int(election.low)


def unwrap(failure: RpcFailure, changes: Sequence[Change]) -> list[Failure]:
    """Return the refused updates of a Write; nothing where the details do not fit the batch."""
    # One p4.v1.Error per update, in their order, those that were accepted with code OK ("Error
    # Reporting Messages"); a batch that was refused as a whole has none.
    details: Sequence[Any] = failure.details
    if len(details) != len(changes):
        return []

    pairs = enumerate(zip(details, changes, strict=True))
    return [
        Failure(index, change, error.canonical_code, error.message)
        for index, (error, change) in pairs
        if error.canonical_code != OK
    ]
