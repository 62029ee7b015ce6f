"""P4Info and entries as text, JSON and binary files.

The published message classes come from an old generator that does not know maps, so protobuf's
printers fail on them. The classes used here are made anew from the same descriptors; the bytes of a
message mean the same to both.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

BINARY_SUFFIXES = (".bin", ".pb")


def message_bytes(message: Message, suffix: str) -> bytes:
    """Return a file of P4Info or of entries: binary for .bin and .pb, .json, else protobuf text."""
    if suffix in BINARY_SUFFIXES:
        return bytes(message.SerializeToString(deterministic=True))

    if suffix == ".json":
        return f"{MessageToJson(_fresh(message))}\n".encode()

    return message_text(message).encode()


def message_text(message: Message) -> str:
    """Return P4Info, or entries, in protobuf's text format."""
    kind = message.DESCRIPTOR
    head = f"# proto-file: {kind.file.name}\n# proto-message: {kind.full_name}\n\n"
    return head + str(text_format.MessageToString(_fresh(message)))


def _fresh(message: Message) -> Any:
    return _message_class(message.DESCRIPTOR.full_name).FromString(message.SerializeToString())


@cache
def _message_class(name: str) -> Any:
    # A pool of its own: the default pool has the published classes already.
    pool = DescriptorPool()
    done: set[str] = set()
    for file in (p4info_pb2.DESCRIPTOR, p4runtime_pb2.DESCRIPTOR):
        _add(file, pool, done)

    return GetMessageClass(pool.FindMessageTypeByName(name))


def _add(file: Any, pool: DescriptorPool, done: set[str]) -> None:
    """Add a file after those that it imports."""
    if file.name in done:
        return

    done.add(file.name)
    for dependency in file.dependencies:
        _add(dependency, pool, done)

    pool.AddSerializedFile(file.serialized_pb)
