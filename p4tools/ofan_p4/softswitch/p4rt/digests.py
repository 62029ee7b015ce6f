"""Digests: buffered, without duplicates, sent to the primary controllers as lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from p4.v1 import p4data_pb2, p4runtime_pb2
from p4.v1.p4runtime_pb2 import Update

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.bytestrings import encode
from ofan_p4.softswitch.p4rt.contract import Add, Contract, known
from ofan_p4.softswitch.p4rt.specs import DigestInfo

Values = tuple[int, ...]
DEFAULT_LIST_SIZE = 1024


@dataclass(slots=True)
class DigestState:
    """The state of one digest: its settings, waiting messages, and lists not yet acknowledged."""

    config: p4runtime_pb2.DigestEntry.Config
    buffer: dict[Values, None] = field(default_factory=dict)
    first_ps: int = 0
    unacknowledged: dict[int, tuple[int, set[Values]]] = field(default_factory=dict)


class Digests:
    """Collects the digests of one pipeline; `send` gets full lists."""

    def __init__(
        self,
        contract: Contract,
        clock: Callable[[], int],
        wall_ns: Callable[[], int],
        send: Callable[[p4runtime_pb2.DigestList], None],
    ) -> None:
        self._contract = contract
        self._clock = clock
        self._wall_ns = wall_ns
        self._send = send
        self._states: dict[int, DigestState] = {}
        self._by_learn_id = {
            number: info for info in contract.digests.values() for number in info.learn_ids
        }
        self._next_list = 1

    def write(self, kind: int, message: p4runtime_pb2.DigestEntry) -> None:
        """Enable, tune or disable a digest."""
        info = known(self._contract.digests, message.digest_id, "digest")
        enabled = info.id in self._states
        if kind == Update.INSERT and enabled:
            raise EntryError(Code.ALREADY_EXISTS, f"digest {info.name!r} is already enabled")
        # 9.8: a digest is enabled by INSERT, tuned by MODIFY, disabled by DELETE.
        if kind != Update.INSERT and not enabled:
            raise EntryError(Code.NOT_FOUND, f"digest {info.name!r} is not enabled")

        if kind == Update.DELETE:
            del self._states[info.id]
            return

        config = p4runtime_pb2.DigestEntry.Config()
        config.CopyFrom(message.config)
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise EntryError(Code.INVALID_ARGUMENT, "timeouts and sizes start at 0")

        # Waiting digests stay: only their waiting time has changed.
        self._states.setdefault(info.id, DigestState(config)).config = config

    def read(self, request: p4runtime_pb2.DigestEntry, add: Add) -> None:
        """Add the selected configurations."""
        if request.digest_id:
            known(self._contract.digests, request.digest_id, "digest")

        for number, state in self._states.items():
            if request.digest_id in (0, number):
                add().digest_entry.CopyFrom(
                    p4runtime_pb2.DigestEntry(digest_id=number, config=state.config)
                )

    def collect(self, learn_id: int, values: Values) -> None:
        """Take a digest from the pipeline."""
        info = self._by_learn_id.get(learn_id)
        state = self._states.get(info.id) if info else None
        # No controller has enabled it: the program's digests go nowhere.
        if info is None or state is None:
            return

        now = self._clock()
        # 9.8: while a list is unacknowledged its values are not sent again, until ack_timeout_ns.
        self._forget(state, now)
        if values in state.buffer or any(
            values in sent for _, sent in state.unacknowledged.values()
        ):
            return

        if not state.buffer:
            state.first_ps = now

        state.buffer[values] = None
        limit = state.config.max_list_size or DEFAULT_LIST_SIZE
        # A timeout of 0 sends every digest at once; a size of 0 leaves the limit to the switch.
        if state.config.max_timeout_ns == 0 or len(state.buffer) >= limit:
            self._flush(info, state, now)

    def acknowledge(self, message: p4runtime_pb2.DigestListAck) -> None:
        """Take a controller's acknowledgement of a list."""
        if message.digest_id not in self._contract.digests:
            raise EntryError(Code.INVALID_ARGUMENT, f"the P4Info has no digest {message.digest_id}")

        state = self._states.get(message.digest_id)
        if state is not None:
            # An acknowledgement may come too late; that is no error.
            state.unacknowledged.pop(message.list_id, None)

    def flush_due(self, now_ps: int) -> None:
        """Send the lists that have waited long enough."""
        for number, state in self._states.items():
            if state.buffer and now_ps >= state.first_ps + state.config.max_timeout_ns * 1000:
                self._flush(self._contract.digests[number], state, now_ps)

    def next_due_ps(self) -> int | None:
        """Return when `flush_due` is next needed."""
        waiting = [state for state in self._states.values() if state.buffer]
        return min(
            (state.first_ps + state.config.max_timeout_ns * 1000 for state in waiting), default=None
        )

    def _flush(self, info: DigestInfo, state: DigestState, now: int) -> None:
        message = p4runtime_pb2.DigestList(
            digest_id=info.id, list_id=self._next_list, timestamp=self._wall_ns()
        )
        message.data.extend(_encode(info, values) for values in state.buffer)
        # Without a timeout nothing is remembered, and nothing needs an acknowledgement.
        if state.config.ack_timeout_ns:
            state.unacknowledged[self._next_list] = (now, set(state.buffer))

        state.buffer.clear()
        self._next_list += 1
        self._send(message)

    def _forget(self, state: DigestState, now: int) -> None:
        limit = state.config.ack_timeout_ns * 1000
        for number in [n for n, (sent, _) in state.unacknowledged.items() if now - sent >= limit]:
            del state.unacknowledged[number]


def _encode(info: DigestInfo, values: Values) -> p4data_pb2.P4Data:
    texts = info.names or (None,) * len(values)
    members = [
        p4data_pb2.P4Data(bitstring=names.text(value) if names else encode(value))
        for value, names in zip(values, texts, strict=True)
    ]
    if info.is_struct:
        return p4data_pb2.P4Data(struct=p4data_pb2.P4StructLike(members=members))
    if info.is_tuple:
        return p4data_pb2.P4Data(tuple=p4data_pb2.P4StructLike(members=members))

    return members[0] if members else p4data_pb2.P4Data()
