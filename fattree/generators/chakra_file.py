"""Chakra execution traces (MLCommons): a file a rank, of length-delimited protobuf messages.

The first message of a file is its metadata, all others are nodes. The messages are declared here by
the public schema's field numbers; a field that the schema does not have is refused. A file may be
compressed (gzip).

A node waits for its data dependencies, and for its control dependencies where these are an order.
In traces of real runs they are not: they say which operation has called which, name operations
that the file does not have, and the node itself. MLCommons' own reader passes over all of them.
"""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from fattree.demand.workloads.graph import refuse_many
from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.files.text_file import MOST_BYTES, read_bytes
from fattree.generators.chakra_fields import refuse_unknown

GZIP = b"\x1f\x8b"
FIELD = descriptor_pb2.FieldDescriptorProto
# Name, number, type, whether there are many.
NODE = (
    ("id", 1, FIELD.TYPE_UINT64, False),
    ("name", 2, FIELD.TYPE_STRING, False),
    ("type", 3, FIELD.TYPE_INT32, False),
    ("ctrl_deps", 4, FIELD.TYPE_UINT64, True),
    ("data_deps", 5, FIELD.TYPE_UINT64, True),
    ("start_time_micros", 6, FIELD.TYPE_UINT64, False),
    ("duration_micros", 7, FIELD.TYPE_UINT64, False),
    ("inputs", 8, FIELD.TYPE_BYTES, False),
    ("outputs", 9, FIELD.TYPE_BYTES, False),
    ("attr", 10, FIELD.TYPE_MESSAGE, True),
)
# The kinds of values that attributes which are read here have had in some version.
ATTRIBUTE = (
    ("name", 1, FIELD.TYPE_STRING, False),
    ("int32_val", 7, FIELD.TYPE_INT32, False),
    ("int64_val", 9, FIELD.TYPE_INT64, False),
    ("uint32_val", 11, FIELD.TYPE_UINT32, False),
    ("uint64_val", 13, FIELD.TYPE_UINT64, False),
    ("sint32_val", 15, FIELD.TYPE_SINT32, False),
    ("sint64_val", 17, FIELD.TYPE_SINT64, False),
    ("bool_val", 27, FIELD.TYPE_BOOL, False),
    ("bool_list", 28, FIELD.TYPE_MESSAGE, False),
    ("string_val", 29, FIELD.TYPE_STRING, False),
)
LIST = (("values", 1, FIELD.TYPE_BOOL, True),)
# The messages that fields of a message type are.
MESSAGES = {"attr": ".ofan_chakra.Attribute", "bool_list": ".ofan_chakra.List"}


class NodeType(IntEnum):
    """The kinds of nodes, as the schema numbers them."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node: its kind, its dependencies, its duration; attributes by name.

    `control` are the control dependencies among those others, or that were left out.
    """

    number: int
    kind: NodeType
    after: tuple[int, ...]
    control: tuple[int, ...]
    duration_us: int
    attributes: dict[str, Any]
    where: str

    def whole(self, name: str) -> int:
        """Return an attribute that must be there, a whole number; raises TrafficError."""
        value = self.attributes.get(name)
        if type(value) is not int or value < 0:
            raise TrafficError(f"{self.where}: {name} is missing, or below 0")

        return value

    @property
    def group(self) -> str:
        """Return the name of a collective's process group, empty for all ranks."""
        return str(self.attributes.get("pg_name", ""))


@dataclass(frozen=True, slots=True)
class Trace:
    """The nodes of every rank, in the order of their files.

    `left_out` is how many control dependencies only say who called whom.
    """

    ranks: list[list[TraceNode]]
    left_out: int = 0

    @property
    def dependencies(self) -> int:
        """Return how many dependencies there are, of both kinds together."""
        return sum(len(node.after) for rank in self.ranks for node in rank)

    @property
    def total_bytes(self) -> int:
        """Return the bytes that nodes name: of every send, and of collectives on every rank."""
        kinds = (NodeType.COMM_SEND, NodeType.COMM_COLL)
        return sum(
            node.attributes.get("comm_size", 0)
            for rank in self.ranks
            for node in rank
            if node.kind in kinds
        )


def _messages() -> tuple[Any, Any]:
    """Return the classes of nodes and of their attributes."""
    file = descriptor_pb2.FileDescriptorProto(
        name="ofan_chakra.proto", package="ofan_chakra", syntax="proto3"
    )
    for message, fields in (("Node", NODE), ("Attribute", ATTRIBUTE), ("List", LIST)):
        described = file.message_type.add(name=message)
        for name, number, kind, is_many in fields:
            described.field.add(
                name=name,
                number=number,
                type=kind,
                label=FIELD.LABEL_REPEATED if is_many else FIELD.LABEL_OPTIONAL,
                type_name=MESSAGES.get(name),
                # So that a value of 0 differs from no value.
                oneof_index=0 if message == "Attribute" and name != "name" else None,
            )

        if message == "Attribute":
            described.oneof_decl.add(name="value")

    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    node, attribute = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ofan_chakra.{name}"))
        for name in ("Node", "Attribute")
    )
    return node, attribute


Node, Attribute = _messages()


def read_chakra(
    prefix: str, memory: Room | None = None, ignored: frozenset[str] = frozenset()
) -> Trace:
    """Read PREFIX.0.et, PREFIX.1.et, ..., without the attributes `ignored`; raises TrafficError."""
    memory = memory or Room()
    ranks: list[list[TraceNode]] = []
    while Path(f"{prefix}.{len(ranks)}.et").exists():
        ranks.append(list(_nodes(f"{prefix}.{len(ranks)}.et", memory, ignored)))
        refuse_many(sum(map(len, ranks)))

    if not ranks:
        raise TrafficError(f"there is no {prefix}.0.et: expected a trace for each rank")

    numbers = [{node.number for node in nodes} for nodes in ranks]
    if all(map(_is_order, ranks, numbers)):
        ordered = [[_after_control(node) for node in nodes] for nodes in ranks]
        return Trace(ordered)

    return Trace(ranks, left_out=sum(len(node.control) for nodes in ranks for node in nodes))


def _is_order(nodes: list[TraceNode], numbers: set[int]) -> bool:
    """Return whether a rank's control dependencies can be kept: all there, none on itself."""
    return all(
        earlier in numbers and earlier != node.number for node in nodes for earlier in node.control
    )


def _after_control(node: TraceNode) -> TraceNode:
    # Those of data may name the same nodes.
    return replace(node, after=tuple(dict.fromkeys((*node.control, *node.after))))


def _nodes(path: str, memory: Room, ignored: frozenset[str]) -> Iterator[TraceNode]:
    content = read_bytes(path, TrafficError)
    if content.startswith(GZIP):
        content = _unpacked(content, path)

    for count, message in enumerate(_delimited(content, path)):
        refuse_many(count)
        # The first is the file's metadata.
        if count:
            node = _node(message, path, count, ignored)
            memory.take(1, len(node.after) + len(node.control))
            yield node


def _unpacked(content: bytes, path: str) -> bytes:
    # Not gzip.decompress: a small file may unpack to more than there is memory.
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(content, MOST_BYTES)
    except (zlib.error, gzip.BadGzipFile):
        raise TrafficError(f"{path}: compressed, but damaged") from None

    if unpacker.unconsumed_tail:
        raise TrafficError(f"{path}: has more than {MOST_BYTES >> 20} MiB")

    if not unpacker.eof:
        raise TrafficError(f"{path}: compressed, but cut short")

    return unpacked


def _delimited(content: bytes, path: str) -> Iterator[bytes]:
    """Yield the messages of a file, each behind its length as a varint."""
    offset = 0
    while offset < len(content):
        length = shift = 0
        while True:
            if offset >= len(content) or shift > 63:
                raise TrafficError(f"{path}: not a Chakra trace, or cut short, at byte {offset}")

            byte = content[offset]
            length |= (byte & 0x7F) << shift
            shift += 7
            offset += 1
            if byte < 0x80:
                break

        if offset + length > len(content):
            raise TrafficError(f"{path}: not a Chakra trace, or cut short, at byte {offset}")

        yield content[offset : offset + length]
        offset += length


def _node(message: bytes, path: str, count: int, ignored: frozenset[str]) -> TraceNode:
    node = Node()
    try:
        node.ParseFromString(message)
        kind = NodeType(node.type)
    except (DecodeError, ValueError):
        raise TrafficError(f"{path}: message {count} is no node of a Chakra trace") from None

    where = f"{path}: node {node.id} ({node.name[:40]})"
    # Refused here: zeros, of which a small compressed file has millions, are such nodes.
    if kind is NodeType.INVALID:
        raise TrafficError(f"{where}: is of type INVALID_NODE")

    if len(unknown := UnknownFieldSet(node)):
        number = unknown[0].field_number
        raise TrafficError(f"{where}: has a field {number}, which the schema does not have")

    # Metadata has no times and bytes.
    attributes = {} if kind is NodeType.METADATA else dict(map(_attribute, node.attr))
    refuse_unknown(attributes, ignored, where)
    return TraceNode(
        number=node.id,
        kind=NodeType.COMP if _is_launch(attributes, kind) else kind,
        after=tuple(dict.fromkeys(node.data_deps)),
        control=tuple(dict.fromkeys(node.ctrl_deps)),
        duration_us=node.duration_micros,
        attributes=attributes,
        where=where,
    )


def _attribute(attribute: Any) -> tuple[str, Any]:
    """Return an attribute's name and value, None for a kind of value that no attribute here has."""
    kind = attribute.WhichOneof("value")
    if kind == "bool_list":
        return attribute.name, tuple(attribute.bool_list.values)

    return attribute.name, getattr(attribute, kind) if kind else None


def _is_launch(attributes: dict[str, Any], kind: NodeType) -> bool:
    """Return whether a node is the CPU's part of a communication, which the GPU's node does."""
    is_communication = kind in (NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMM_COLL)
    is_said = any(name.startswith("comm_") for name in attributes)
    return is_communication and bool(attributes.get("is_cpu_op")) and not is_said
