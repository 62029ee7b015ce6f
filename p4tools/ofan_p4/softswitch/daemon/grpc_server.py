"""P4Runtime over gRPC: an asyncio server, which hands every call to the dataplane's thread."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import grpc

from ofan_p4.softswitch.base.errors import Code, SoftswitchError
from ofan_p4.softswitch.daemon.dataplane import Dataplane
from ofan_p4.softswitch.daemon.options import Tls
from ofan_p4.softswitch.p4rt.service import P4RuntimeService, Stream
from ofan_p4.softswitch.p4rt.status import MAX_TEXT, StatusError, status_bytes

# isort: split
from google.protobuf.message import DecodeError
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

T = TypeVar("T")
MAX_MESSAGE = 1 << 28
# A controller that reads nothing must not fill memory; packet-ins beyond this are lost.
MAX_UNSENT = 4096
OPTIONS = (
    # Otherwise a second switch on the same address would start and get half of the calls.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
)
Context = Any


class ServerError(SoftswitchError):
    """The server cannot listen."""


class Servicer(p4runtime_pb2_grpc.P4RuntimeServicer):  # type: ignore[misc]
    """Runs every call on the dataplane's thread and waits for it here."""

    def __init__(self, service: P4RuntimeService, dataplane: Dataplane) -> None:
        self._service = service
        self._dataplane = dataplane

    async def Write(self, request: Any, context: Context) -> Any:
        """Apply a batch of updates."""
        # In steps, between which packets are processed: a batch may have thousands of updates.
        await self._call(context, request, lambda: self._service.write_steps(request))
        return p4runtime_pb2.WriteResponse()

    async def Read(self, request: Any, context: Context) -> AsyncIterator[Any]:
        """Read entities."""
        responses, failure = await self._call(
            context, request, lambda: self._service.read_all(request)
        )
        for response in responses:
            yield response

        if failure is not None:
            await _abort(context, failure)

    async def SetForwardingPipelineConfig(self, request: Any, context: Context) -> Any:
        """Verify, save or commit a pipeline."""
        await self._call(context, request, lambda: self._service.set_pipeline(request))
        # A pipeline refers to itself: the replaced one would stay for as long as the garbage
        # collector is rarely run.
        self._dataplane.submit(_run(_collect))
        return p4runtime_pb2.SetForwardingPipelineConfigResponse()

    async def GetForwardingPipelineConfig(self, request: Any, context: Context) -> Any:
        """Return the current pipeline."""
        return await self._call(
            context, request, lambda: self._service.get_pipeline(request), is_short=True
        )

    async def Capabilities(self, request: Any, context: Context) -> Any:
        """Return the version of the API."""
        return await self._call(
            context, request, lambda: self._service.capabilities(request), is_short=True
        )

    async def StreamChannel(
        self, requests: AsyncIterator[Any], context: Context
    ) -> AsyncIterator[Any]:
        """Serve one controller's stream; answers that it does not take in time are dropped."""
        outbox = Outbox(asyncio.get_running_loop())
        stream = await self._on_dataplane(
            lambda: self._service.open_stream(outbox.put), is_short=True
        )
        # Both directions at once: answers and notifications come when they like.
        reader = asyncio.ensure_future(self._read_stream(stream, requests, outbox))

        try:
            while (message := await outbox.get()) is not None:
                yield message
        finally:
            reader.cancel()
            # Like every call on the dataplane's thread, which alone touches the switch.
            self._dataplane.submit(_run(stream.close), is_short=True)

        if outbox.failure is not None:
            await _abort(context, outbox.failure)

    async def _read_stream(
        self, stream: Stream, requests: AsyncIterator[Any], outbox: Outbox
    ) -> None:
        try:
            async for request in requests:
                _check_message(request)
                await self._on_dataplane(partial(stream.receive, request), is_short=True)
        except StatusError as error:
            outbox.failure = error
        finally:
            outbox.finish()

    async def _call(
        self, context: Context, request: Any, action: Callable[[], T], is_short: bool = False
    ) -> T:
        try:
            _check_message(request)
            return await self._on_dataplane(action, is_short)
        except StatusError as error:
            await _abort(context, error)
            raise

    async def _on_dataplane(self, action: Callable[[], T], is_short: bool = False) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._dataplane.submit(_answer(action, loop, future), is_short)

        return await future


class Malformed:
    """Placeholder for a message that cannot be parsed."""


def _parser(kind: Any) -> Callable[[bytes], Any]:
    """Return a parser that never raises: gRPC would answer with its traceback's last line."""

    def parse(data: bytes) -> Any:
        try:
            return kind.FromString(data)
        except (DecodeError, ValueError, RecursionError):
            return Malformed()

    return parse


def _check_message(request: Any) -> None:
    if isinstance(request, Malformed):
        raise StatusError(Code.INVALID_ARGUMENT, "the request is not a message of this call")


def handlers(servicer: Servicer) -> Any:
    """Return the calls of P4Runtime with their parsers."""
    # From the service's descriptor: the generated registration would bring its own parsers.
    methods = {}
    for name, method in p4runtime_pb2.DESCRIPTOR.services_by_name[
        "P4Runtime"
    ].methods_by_name.items():
        request, response = (
            getattr(p4runtime_pb2, kind.name) for kind in (method.input_type, method.output_type)
        )
        make = MAKERS[name]
        methods[name] = make(getattr(servicer, name), _parser(request), response.SerializeToString)

    return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", methods)


MAKERS = {
    "Write": grpc.unary_unary_rpc_method_handler,
    "Read": grpc.unary_stream_rpc_method_handler,
    "SetForwardingPipelineConfig": grpc.unary_unary_rpc_method_handler,
    "GetForwardingPipelineConfig": grpc.unary_unary_rpc_method_handler,
    "StreamChannel": grpc.stream_stream_rpc_method_handler,
    "Capabilities": grpc.unary_unary_rpc_method_handler,
}


class Outbox:
    """Messages on their way from the dataplane's thread to one stream."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self.failure: StatusError | None = None

    def put(self, message: Any) -> None:
        """Send a message; called on the dataplane's thread, never blocks."""
        if self._queue.qsize() >= MAX_UNSENT:
            return

        # asyncio's queues belong to the thread of their loop, which may have stopped.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._queue.put_nowait, message)

    def finish(self) -> None:
        """End the stream after the messages that wait already; called on the loop's thread."""
        self._queue.put_nowait(None)

    async def get(self) -> Any:
        """Return the next message, None at the end."""
        return await self._queue.get()


def _answer(
    action: Callable[[], T], loop: asyncio.AbstractEventLoop, future: asyncio.Future[T]
) -> Iterator[None]:
    """Run an action, which may be a generator of steps, and send its result to the loop."""
    try:
        result = action()
        if isinstance(result, Iterator):
            yield from result
    except Exception as error:
        _send(loop, future, None, error)
        return

    _send(loop, future, result, None)


def _send(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Any],
    result: Any,
    error: Exception | None,
) -> None:
    # The server may have stopped while the switch was at work: then no client waits for the answer.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    # The client has hung up; the switch has served its request.
    if future.cancelled():
        return

    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def _collect() -> None:
    gc.collect()


def _run(action: Callable[[], None]) -> Iterator[None]:
    action()
    yield


async def _abort(context: Context, error: StatusError) -> None:
    """End a call with its status.

    The details travel as google.rpc.Status in the trailing metadata.
    """
    code = next(code for code in grpc.StatusCode if code.value[0] == error.code)
    # The key under which gRPC's richer error model is looked for.
    trailer = (("grpc-status-details-bin", status_bytes(error)),) if error.details else ()
    await context.abort(code, error.message[:MAX_TEXT], trailer)


class GrpcThread:
    """The server's thread: `start` returns the port it listens on, `stop` ends it."""

    def __init__(self, servicer: Servicer, address: str, tls: Tls | None) -> None:
        self._servicer = servicer
        self._address = address
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._started: threading.Event = threading.Event()
        self._failure: str | None = None
        self._port = 0
        self._thread = threading.Thread(target=self._run, name="grpc", daemon=True)

    def start(self) -> int:
        """Listen; ServerError where the address is taken or cannot be used."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise ServerError(self._failure)

        return self._port

    def stop(self) -> None:
        """Close all connections and wait for the thread."""
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(timeout=5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        server = grpc.aio.server(options=OPTIONS)
        server.add_generic_rpc_handlers((handlers(self._servicer),))
        try:
            self._port = self._bind(server)
        except (RuntimeError, OSError) as error:
            self._failure = f"cannot listen on {self._address}: {_reason(error)}"
            return

        await server.start()
        self._started.set()
        await self._done.wait()
        # Streams never end by themselves.
        await server.stop(grace=0.2)

    def _bind(self, server: Any) -> int:
        if self._tls is None:
            return int(server.add_insecure_port(self._address))

        return int(server.add_secure_port(self._address, credentials(self._tls)))


def _reason(error: Exception) -> str:
    text = str(error)
    return (
        "the address is already in use"
        if "Failed to bind" in text or "in use" in text
        else text.splitlines()[0]
    )


def credentials(tls: Tls) -> Any:
    """Return the server's credentials from its files."""
    authority = Path(tls.authority).read_bytes() if tls.authority else None
    pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
    return grpc.ssl_server_credentials([pair], authority, tls.wants_client_certificate)
