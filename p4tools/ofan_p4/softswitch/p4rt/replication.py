"""Multicast groups, clone sessions and parser value sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Update

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.arrays import only_modify
from ofan_p4.softswitch.p4rt.bytestrings import decode, encode
from ofan_p4.softswitch.p4rt.contract import Add, Contract, known
from ofan_p4.softswitch.p4rt.matches import add_match, decode_match
from ofan_p4.softswitch.p4rt.specs import MatchSpec
from ofan_p4.softswitch.state.replication import CloneSession, Replica, Replication
from ofan_p4.softswitch.state.tables import Match, prefix_mask
from ofan_p4.softswitch.state.valuesets import ValueMatch

T = TypeVar("T")
# Widths of v1model and BMv2: egress_rid 16 bits, a clone session 15, priority 3.
MAX_INSTANCE = (1 << 16) - 1
MAX_SESSION = (1 << 15) - 1
MAX_PRIORITY = 7


class ReplicationEngine:
    """Writes and reads a packet replication engine."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication

    def write(self, kind: int, message: p4runtime_pb2.PacketReplicationEngineEntry) -> None:
        """Apply one update."""
        match message.WhichOneof("type"):
            case "multicast_group_entry":
                self._write_group(kind, message.multicast_group_entry)
            case "clone_session_entry":
                self._write_session(kind, message.clone_session_entry)
            case _:
                raise _invalid("neither a multicast group nor a clone session")

    def read(self, query: p4runtime_pb2.PacketReplicationEngineEntry, add: Add) -> None:
        """Add the selected groups or sessions."""
        match query.WhichOneof("type"):
            case "multicast_group_entry":
                self._read_groups(query.multicast_group_entry.multicast_group_id, add)
            case "clone_session_entry":
                self._read_sessions(query.clone_session_entry.session_id, add)
            case _:
                raise _invalid("neither a multicast group nor a clone session")

    def _write_group(self, kind: int, message: p4runtime_pb2.MulticastGroupEntry) -> None:
        number = message.multicast_group_id
        groups = self._replication.groups
        _check_update(kind, number, existing=groups, noun="multicast group", limit=MAX_INSTANCE)

        if kind == Update.DELETE:
            del groups[number]
            # Only groups have metadata (9.5.1); it is returned as it was written.
            self._replication.metadata.pop(number, None)
            return

        groups[number] = _replicas(message.replicas)
        self._replication.metadata[number] = message.metadata

    def _write_session(self, kind: int, message: p4runtime_pb2.CloneSessionEntry) -> None:
        number = message.session_id
        sessions = self._replication.sessions
        _check_update(kind, number, existing=sessions, noun="clone session", limit=MAX_SESSION)

        if kind == Update.DELETE:
            del sessions[number]
            return

        if message.packet_length_bytes < 0:
            raise _invalid(f"packet_length_bytes {message.packet_length_bytes}")
        if message.class_of_service > MAX_PRIORITY:
            raise _invalid(f"class_of_service {message.class_of_service} is above {MAX_PRIORITY}")

        replicas = _replicas(message.replicas)
        sessions[number] = CloneSession(
            replicas, message.class_of_service, message.packet_length_bytes
        )

    def _read_groups(self, number: int, add: Add) -> None:
        for group, replicas in _one_or_all(self._replication.groups, number):
            entity = add()
            entry = entity.packet_replication_engine_entry.multicast_group_entry
            entry.multicast_group_id = group
            entry.metadata = self._replication.metadata.get(group, b"")
            _add_replicas(entry.replicas, replicas)

    def _read_sessions(self, number: int, add: Add) -> None:
        for session, session_id in _one_or_all(self._replication.sessions, number):
            entity = add()
            entry = entity.packet_replication_engine_entry.clone_session_entry
            entry.session_id = session
            entry.class_of_service = session_id.priority
            entry.packet_length_bytes = session_id.truncate
            _add_replicas(entry.replicas, session_id.replicas)


class ValueSets:
    """Writes and reads the parser value sets of one pipeline."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract

    def write(self, kind: int, message: p4runtime_pb2.ValueSetEntry) -> None:
        """Replace the members of a value set."""
        only_modify(kind, "value set")
        info = known(self._contract.value_sets, message.value_set_id, "value set")
        # 9.6: a write replaces all members, so that the size is that of the message.
        if info.size and len(message.members) > info.size:
            raise EntryError(
                Code.RESOURCE_EXHAUSTED, f"value set {info.name!r} holds {info.size} members"
            )

        matches = [decode_match(info.key, member.match, info.name) for member in message.members]
        if len({*matches}) < len(matches):
            raise EntryError(
                Code.ALREADY_EXISTS, f"value set {info.name!r}: a member appears twice"
            )

        info.runtime.replace([(match, _value_match(info.key, match)) for match in matches])

    def read(self, query: p4runtime_pb2.ValueSetEntry, add: Add) -> None:
        """Add the selected value sets."""
        numbers = [query.value_set_id] if query.value_set_id else list(self._contract.value_sets)
        for number in numbers:
            info = known(self._contract.value_sets, number, "value set")
            entity = add()
            entity.value_set_entry.value_set_id = number

            for match, _ in info.runtime.members:
                add_match(info.key, match, entity.value_set_entry.members.add().match)


def _value_match(key: Iterable[MatchSpec], match: Match) -> ValueMatch:
    return tuple(_bounds(spec, *pair) for spec, pair in zip(key, match, strict=True))


def _bounds(spec: MatchSpec, first: int, second: int) -> tuple[int, int, int]:
    full = (1 << spec.bits) - 1
    match spec.kind:
        case "range":
            return first, second, full
        case "lpm":
            return first, first, prefix_mask(second, spec.bits)
        case "ternary" | "optional":
            return first, first, second
        case _:
            return first, first, full


def _check_update(kind: int, number: int, existing: dict[int, T], noun: str, limit: int) -> None:
    if not 0 < number <= limit:
        raise _invalid(f"{noun} {number} is not between 1 and {limit}")
    if kind == Update.INSERT and number in existing:
        raise EntryError(Code.ALREADY_EXISTS, f"{noun} {number} already exists")
    if kind != Update.INSERT and number not in existing:
        raise EntryError(Code.NOT_FOUND, f"no {noun} {number}")


def _replicas(messages: Iterable[p4runtime_pb2.Replica]) -> tuple[Replica, ...]:
    replicas = tuple(_replica(message) for message in messages)
    # 9.5.1: (port, instance) identifies a replica.
    if len({(item.port, item.instance) for item in replicas}) < len(replicas):
        raise _invalid("a (port, instance) pair appears twice")

    return replicas


def _replica(message: p4runtime_pb2.Replica) -> Replica:
    if message.instance > MAX_INSTANCE:
        raise _invalid(f"instance {message.instance} is above {MAX_INSTANCE}")
    backups = tuple(
        (decode(item.port, 32, "port of a backup replica"), item.instance)
        for item in message.backup_replicas
    )
    # `port` is the newer form, as bytes; reads return the written form.
    if message.WhichOneof("port_kind") == "port":
        port = decode(message.port, 32, "replica port")
        return Replica(port, message.instance, backups=backups)

    return Replica(message.egress_port, message.instance, is_bytes=False, backups=backups)


def _add_replicas(messages: object, replicas: Iterable[Replica]) -> None:
    for replica in replicas:
        message = messages.add(instance=replica.instance)  # type: ignore[attr-defined]
        if replica.is_bytes:
            message.port = encode(replica.port)
        else:
            message.egress_port = replica.port

        for port, instance in replica.backups:
            message.backup_replicas.add(port=encode(port), instance=instance)


def _one_or_all(items: dict[int, T], number: int) -> Iterator[tuple[int, T]]:
    if not number:
        yield from list(items.items())
    elif number in items:
        yield number, items[number]
    else:
        raise EntryError(Code.NOT_FOUND, f"nothing has the id {number}")


def _invalid(message: str) -> EntryError:
    return EntryError(Code.INVALID_ARGUMENT, message)
