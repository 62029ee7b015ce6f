"""P4Info as text, JSON and binary files.

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
from google.protobuf.message_factory import GetMessageClass
from p4.config.v1 import p4info_pb2

BINARY_SUFFIXES = (".bin", ".pb")
HEAD = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"


def p4info_bytes(info: p4info_pb2.P4Info, suffix: str) -> bytes:
    """Return a P4Info file: binary for .bin and .pb, JSON for .json, else protobuf text."""
    if suffix in BINARY_SUFFIXES:
        return bytes(info.SerializeToString(deterministic=True))

    if suffix == ".json":
        return f"{MessageToJson(_fresh(info))}\n".encode()

    return p4info_text(info).encode()


def p4info_text(info: p4info_pb2.P4Info) -> str:
    """Return P4Info in protobuf's text format."""
    return HEAD + str(text_format.MessageToString(_fresh(info)))


def _fresh(info: p4info_pb2.P4Info) -> Any:
    return _message_class().FromString(info.SerializeToString())


@cache
def _message_class() -> Any:
    # A pool of its own: the default one has the published classes already.
    pool = DescriptorPool()
    _add(p4info_pb2.DESCRIPTOR, pool, set())
    return GetMessageClass(pool.FindMessageTypeByName("p4.config.v1.P4Info"))


def _add(file: Any, pool: DescriptorPool, done: set[str]) -> None:
    """Add a file after those that it imports."""
    if file.name in done:
        return

    done.add(file.name)
    for dependency in file.dependencies:
        _add(dependency, pool, done)

    pool.AddSerializedFile(file.serialized_pb)
