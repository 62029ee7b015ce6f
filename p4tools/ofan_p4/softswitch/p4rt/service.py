"""A P4Runtime server for one switch, without gRPC.

It takes and returns `p4.v1` messages, so that a gRPC server, a virtual network and a test can all
call it. All calls must come from one thread, which also moves the packets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity
from p4.v1.p4runtime_pb2 import GetForwardingPipelineConfigRequest as GetRequest
from p4.v1.p4runtime_pb2 import SetForwardingPipelineConfigRequest as SetRequest

from ofan_p4.softswitch.base.errors import Code, EntryError, PipelineError
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4rt.arbitration import Arbitration, Client, Send
from ofan_p4.softswitch.p4rt.loaded import (
    Loaded,
    carry_over,
    load,
    read_entity,
    write_all_or_none,
    write_update,
)
from ofan_p4.softswitch.p4rt.packet_io import decode_packet_out, encode_packet_in
from ofan_p4.softswitch.p4rt.status import StatusError, error_of
from ofan_p4.softswitch.p4rt.translation import Translations

API_VERSION = "1.4.0"
# An entity rarely has more than a few hundred bytes.
ENTITIES_PER_RESPONSE = 1000
# proto3 lets any number through as an enum.
RESPONSE_TYPES = (
    GetRequest.ALL,
    GetRequest.COOKIE_ONLY,
    GetRequest.P4INFO_AND_COOKIE,
    GetRequest.DEVICE_CONFIG_AND_COOKIE,
)


class Pages:
    """Collects entities in responses of limited size: by default gRPC clients take 4 MB."""

    def __init__(self) -> None:
        self.responses: list[p4runtime_pb2.ReadResponse] = []

    def add(self) -> Entity:
        """Return a new entity of the last response, or of a new response if the last is full."""
        if not self.responses or len(self.responses[-1].entities) >= ENTITIES_PER_RESPONSE:
            self.responses.append(p4runtime_pb2.ReadResponse())

        return self.responses[-1].entities.add()


class Stream:
    """One open StreamChannel; the owner of the connection calls `receive` and `close`."""

    def __init__(self, service: P4RuntimeService, client: Client) -> None:
        self._service = service
        self._client = client

    def receive(self, message: p4runtime_pb2.StreamMessageRequest) -> None:
        """Handle a message of the controller; a StatusError ends the stream with its status."""
        match message.WhichOneof("update"):
            # Errors in arbitration end the stream (5), those of packets and digests are answered on
            # it (16.6).
            case "arbitration":
                self._service.arbitration.update(self._client, message.arbitration)
            case "packet":
                self._guarded(
                    lambda: self._service.packet_out(self._client, message.packet), message
                )
            case "digest_ack":
                self._guarded(lambda: self._service.acknowledge(message.digest_ack), message)
            case _:
                self._fail(EntryError(Code.UNIMPLEMENTED, "unknown stream message"), message)

    def close(self) -> None:
        """Forget the controller."""
        self._service.arbitration.leave(self._client)

    def _guarded(
        self, action: Callable[[], None], message: p4runtime_pb2.StreamMessageRequest
    ) -> None:
        try:
            action()
        except EntryError as error:
            self._fail(error, message)

    def _fail(self, error: EntryError, message: p4runtime_pb2.StreamMessageRequest) -> None:
        response = p4runtime_pb2.StreamMessageResponse()
        response.error.canonical_code, response.error.message = error.code, str(error)
        match message.WhichOneof("update"):
            case "packet":
                response.error.packet_out.packet_out.CopyFrom(message.packet)
            case "digest_ack":
                response.error.digest_list_ack.digest_list_ack.CopyFrom(message.digest_ack)
            case _:
                response.error.other.other.CopyFrom(message.other)

        self._client.send(response)


class P4RuntimeService:
    """The calls of P4Runtime on one switch.

    `wall_ns` stamps notifications (by default with the switch's own time).
    """

    def __init__(self, switch: Switch, wall_ns: Callable[[], int] | None = None) -> None:
        self.switch = switch
        self._wall_ns = wall_ns or (lambda: switch.clock() // 1000)
        self.arbitration = Arbitration(switch.device_id)
        self._loaded: Loaded | None = None
        self._saved: Loaded | None = None
        # Of the switch, not of a pipeline: names keep their numbers.
        self._translations = Translations()
        switch.on_packet_in = self._packet_in
        switch.on_digest = self._digest

    def capabilities(self, request: p4runtime_pb2.CapabilitiesRequest | None = None) -> Any:
        """Return the version of the API."""
        device = getattr(request, "device_id", None)
        if device:
            self._check_device(device)

        return p4runtime_pb2.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def open_stream(self, send: Send) -> Stream:
        """Open a stream on which the switch answers with `send`."""
        return Stream(self, Client(send))

    def write(self, request: p4runtime_pb2.WriteRequest) -> None:
        """Apply the updates in order.

        Where some fail, a StatusError carries one p4.v1.Error per update.
        """
        for _ in self.write_steps(request):
            pass

    def write_steps(self, request: p4runtime_pb2.WriteRequest) -> Iterator[None]:
        """Do the same in steps, one per update, between which packets may be processed."""
        self._check_device(request.device_id)
        self.arbitration.check_primary(
            request.role, request.election_id, request.HasField("election_id")
        )
        loaded = self._require_pipeline()

        outcomes: list[EntryError | None] = []
        if request.atomicity == p4runtime_pb2.WriteRequest.CONTINUE_ON_ERROR:
            for update in request.updates:
                outcomes.append(write_update(loaded, update))
                yield
        else:
            # 12.2: all or none. Packets do not come between them either: DATAPLANE_ATOMIC asks for
            # that, and ROLLBACK_ON_ERROR allows it.
            outcomes = write_all_or_none(loaded, request.updates)

        failed = [error for error in outcomes if error is not None]
        if failed:
            # In a batch that was undone, the failed update rather than those that it took along.
            cause = next((error for error in failed if error.code != Code.ABORTED), failed[0])
            message = f"{len(failed)} of {len(outcomes)} updates failed; the first: {cause}"
            # 12.3: UNKNOWN for the batch, one error per update, in order, OK ones included.
            raise StatusError(Code.UNKNOWN, message, [error_of(error) for error in outcomes])

    def read(self, request: p4runtime_pb2.ReadRequest) -> list[p4runtime_pb2.ReadResponse]:
        """Return the selected entities.

        Where some requests are invalid, a StatusError with one p4.v1.Error each.
        """
        responses, failure = self.read_all(request)
        if failure is not None:
            raise failure

        return responses

    def read_all(
        self, request: p4runtime_pb2.ReadRequest
    ) -> tuple[list[p4runtime_pb2.ReadResponse], StatusError | None]:
        """Return the entities of the valid requests, and the status of the invalid requests."""
        self._check_device(request.device_id)
        loaded = self._require_pipeline()
        pages = Pages()
        outcomes = [read_entity(loaded, entity, pages.add) for entity in request.entities]
        failed = [error for error in outcomes if error is not None]

        if not failed:
            return pages.responses, None

        message = f"the first of {len(failed)} failed requests: {failed[0]}"
        return pages.responses, StatusError(
            Code.UNKNOWN, message, [error_of(error) for error in outcomes]
        )

    def set_pipeline(self, request: SetRequest) -> None:
        """Verify, save or commit a pipeline; where that fails the old one stays."""
        self._check_device(request.device_id)
        self.arbitration.check_primary(
            request.role, request.election_id, request.HasField("election_id")
        )
        match request.action:
            case SetRequest.VERIFY:
                self._verify(request)
            case SetRequest.VERIFY_AND_SAVE:
                self._saved = self._verify(request)
            case SetRequest.VERIFY_AND_COMMIT:
                self._commit(self._verify(request))
            case SetRequest.COMMIT:
                self._commit_saved(request)
            case SetRequest.RECONCILE_AND_COMMIT:
                self._reconcile(self._verify(request))
            case _:
                raise StatusError(Code.INVALID_ARGUMENT, "no action is given")

    def get_pipeline(
        self, request: GetRequest
    ) -> p4runtime_pb2.GetForwardingPipelineConfigResponse:
        """Return the parts of the current configuration that are asked for."""
        self._check_device(request.device_id)
        if request.response_type not in RESPONSE_TYPES:
            raise StatusError(
                Code.INVALID_ARGUMENT, f"unknown response type {request.response_type}"
            )

        response = p4runtime_pb2.GetForwardingPipelineConfigResponse()
        # 14: after VERIFY_AND_SAVE reads and writes are about the saved configuration.
        loaded = self._saved or self._loaded
        if loaded is None:
            return response

        config = response.config
        config.SetInParent()
        if loaded.config.HasField("cookie"):
            config.cookie.CopyFrom(loaded.config.cookie)

        if request.response_type in (GetRequest.ALL, GetRequest.P4INFO_AND_COOKIE):
            config.p4info.CopyFrom(loaded.config.p4info)

        if request.response_type in (GetRequest.ALL, GetRequest.DEVICE_CONFIG_AND_COOKIE):
            config.p4_device_config = loaded.config.p4_device_config

        return response

    def packet_out(self, client: Client, packet: p4runtime_pb2.PacketOut) -> None:
        """Inject a packet of the primary controller."""
        # 16.1: packet-outs of others are dropped, and answered with an error.
        if not self.arbitration.is_primary(client):
            raise EntryError(Code.PERMISSION_DENIED, "only the primary controller may send packets")
        if self._loaded is None or self.switch.cpu_port is None:
            raise EntryError(Code.FAILED_PRECONDITION, "packet-outs need a pipeline and a CPU port")

        self.switch.packet_out(decode_packet_out(self._loaded.contract.packet_out, packet))

    def acknowledge(self, message: p4runtime_pb2.DigestListAck) -> None:
        """Take the acknowledgement of a digest list."""
        if self._loaded is None:
            raise EntryError(Code.FAILED_PRECONDITION, "no pipeline is set")

        self._loaded.digests.acknowledge(message)

    def tick(self) -> None:
        """Send the notifications that are due: lists of digests, and idle entries."""
        if self._loaded is None:
            return

        now = self.switch.clock()
        self._loaded.digests.flush_due(now)
        idle = list(self._loaded.entries.idle(now))

        if idle:
            notification = p4runtime_pb2.IdleTimeoutNotification(
                table_entry=idle, timestamp=self._wall_ns()
            )
            self._to_primaries(
                p4runtime_pb2.StreamMessageResponse(idle_timeout_notification=notification)
            )

    def next_tick_ps(self) -> int | None:
        """Return when `tick` is next needed, None while nothing waits."""
        if self._loaded is None:
            return None

        times = (self._loaded.digests.next_due_ps(), self._loaded.entries.next_expiry_ps())
        return min((time for time in times if time is not None), default=None)

    def _check_device(self, device_id: int) -> None:
        if device_id != self.switch.device_id:
            raise StatusError(
                Code.NOT_FOUND, f"this is device {self.switch.device_id}, not {device_id}"
            )

    def _require_pipeline(self) -> Loaded:
        if self._saved is not None:
            return self._saved
        if self._loaded is None:
            raise StatusError(Code.FAILED_PRECONDITION, "no forwarding pipeline is set")

        return self._loaded

    def _verify(self, request: SetRequest) -> Loaded:
        if not request.HasField("config"):
            raise StatusError(Code.INVALID_ARGUMENT, "no config is given")

        try:
            return load(
                request.config,
                self.switch,
                self._translations,
                wall_ns=self._wall_ns,
                send_digests=self._send_digests,
            )
        except (PipelineError, EntryError) as error:
            raise StatusError(Code.INVALID_ARGUMENT, str(error)) from None

    def _commit(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._saved = None
        self.switch.commit(loaded.pipeline)
        # `commit` empties the replication engine; entries written after VERIFY_AND_SAVE are there.
        self.switch.replication = loaded.replication

    def _commit_saved(self, request: SetRequest) -> None:
        if request.HasField("config"):
            raise StatusError(Code.INVALID_ARGUMENT, "COMMIT takes no config")
        if self._saved is None:
            raise StatusError(Code.NOT_FOUND, "no saved config")

        self._commit(self._saved)

    def _reconcile(self, fresh: Loaded) -> None:
        """Commit a pipeline into which the entities of the old one have been written.

        All of them or none.
        """
        old = self._loaded
        if old is not None:
            try:
                carry_over(old, fresh)
            except EntryError as error:
                raise StatusError(
                    Code.INVALID_ARGUMENT, f"the forwarding state cannot be kept: {error}"
                ) from None

        self._commit(fresh)

    def _packet_in(self, frame: bytes) -> None:
        if self._loaded is not None:
            packet = encode_packet_in(self._loaded.contract.packet_in, frame)
            self._to_primaries(p4runtime_pb2.StreamMessageResponse(packet=packet))

    def _digest(self, learn_id: int, values: tuple[int, ...]) -> None:
        if self._loaded is not None:
            self._loaded.digests.collect(learn_id, values)

    def _send_digests(self, message: p4runtime_pb2.DigestList) -> None:
        self._to_primaries(p4runtime_pb2.StreamMessageResponse(digest=message))

    def _to_primaries(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        for client in self.arbitration.primaries():
            client.send(message)
