"""The transport to a switch process: P4Runtime over gRPC."""

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Any

import grpc
from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

from controller.errors import RpcFailure
from controller.session import DEADLINE_S, Send

# The trailing metadata in which gRPC carries a google.rpc.Status.
DETAILS = "grpc-status-details-bin"
# A switch may send all that is read back in one message; gRPC's own limit would be 4 MiB.
MAX_MESSAGE_BYTES = 256 << 20
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # A proxy that the environment names would be asked for 127.0.0.1, too.
    ("grpc.enable_http_proxy", 0),
)


class GrpcTransport:
    """The calls of P4Runtime to an address such as `127.0.0.1:9559` or `unix:/run/edge0_0`."""

    def __init__(self, address: str, deadline_s: float = DEADLINE_S) -> None:
        self._channel = grpc.insecure_channel(address, OPTIONS)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._deadline_s = deadline_s

    def write(self, request: p4runtime_pb2.WriteRequest) -> None:
        """Apply updates."""
        self._call(self._stub.Write, request)

    def read(self, request: p4runtime_pb2.ReadRequest) -> list[p4runtime_pb2.ReadResponse]:
        """Return the selected entities."""
        return list(self._call(lambda r, **options: list(self._stub.Read(r, **options)), request))

    def set_pipeline(self, request: p4runtime_pb2.SetForwardingPipelineConfigRequest) -> None:
        """Set the forwarding pipeline."""
        self._call(self._stub.SetForwardingPipelineConfig, request)

    def get_pipeline(self, request: p4runtime_pb2.GetForwardingPipelineConfigRequest) -> Any:
        """Return the forwarding pipeline."""
        return self._call(self._stub.GetForwardingPipelineConfig, request)

    def open_stream(self, send: Send) -> "GrpcStream":
        """Open a stream; a thread gives the switch's messages to `send`."""
        return GrpcStream(self._stub.StreamChannel, send)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        # A switch process that has just been started may not listen yet: wait, up to the deadline.
        try:
            return method(request, timeout=self._deadline_s, wait_for_ready=True)
        except grpc.RpcError as error:
            raise RpcFailure(
                error.code().value[0], error.details() or "", update_errors(error)
            ) from None


class GrpcStream:
    """A stream channel with the thread that listens to it."""

    def __init__(self, open_channel: Callable[..., Any], send: Send) -> None:
        self._outgoing: SimpleQueue[p4runtime_pb2.StreamMessageRequest | None] = SimpleQueue()
        self._call = open_channel(self._requests(), wait_for_ready=True)
        self.is_open = True
        self._listener = Thread(target=self._listen, args=(send,), daemon=True)
        self._listener.start()

    def receive(self, message: p4runtime_pb2.StreamMessageRequest) -> None:
        """Hand a message to the switch."""
        self._outgoing.put(message)

    def close(self) -> None:
        """End the stream and its thread."""
        # None ends the thread of gRPC's that takes messages from the queue (`_requests`).
        self._outgoing.put(None)
        self._call.cancel()
        self._listener.join()

    def _requests(self) -> Iterator[p4runtime_pb2.StreamMessageRequest]:
        while (message := self._outgoing.get()) is not None:
            yield message

    def _listen(self, send: Send) -> None:
        try:
            for message in self._call:
                send(message)
        # `close` cancelled the call, or the switch is gone: `is_open` is false then.
        except grpc.RpcError:
            pass
        finally:
            self.is_open = False
            self._outgoing.put(None)


def update_errors(error: Any) -> list[p4runtime_pb2.Error]:
    """Return the p4.v1.Error of every update that a failed call carries."""
    packed = dict(error.trailing_metadata() or ()).get(DETAILS)
    if packed is None:
        return []

    errors = []
    for detail in status_pb2.Status.FromString(packed).details:
        errors.append(p4runtime_pb2.Error())
        detail.Unpack(errors[-1])

    return errors
