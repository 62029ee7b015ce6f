"""The programs that are measured, their entries, and the frames that they forward."""

import json
import random
import re
import struct
from functools import lru_cache
from pathlib import Path

import p4src
from ofan_p4.compiler import Program, compile_file
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService

# isort: split
from google.protobuf import text_format
from p4.v1 import p4runtime_pb2

HERE = Path(__file__).resolve().parents[1]
IN = 1
OUT = 2
CPU = 510
SIZES = {"64 B": 60, "1,500 B": 1514}
DESTINATION = 0x0A010002

TO_GROUP = [
    """table_entry { table_id: $routes match {
       field_id: 1 lpm { value: "\\n\\001\\000\\002" prefix_len: 32 } }
       action { action { action_id: $to_group
       params { param_id: 1 value: "\\000" } params { param_id: 2 value: "\\001" }
       params { param_id: 3 value: "\\001" } params { param_id: 4 value: "\\000" }
       params { param_id: 5 value: "\\000" } } } }""",
    """table_entry { table_id: $schedule match { field_id: 1 exact { value: "\\001" } }
       match { field_id: 2 exact { value: "\\000" } }
       action { action { action_id: $take_port params { param_id: 1 value: "\\002" } } } }""",
]
ROUTED = [
    """table_entry { table_id: $routes match {
       field_id: 1 lpm { value: "\\n\\001\\000\\000" prefix_len: 24 } }
       action { action { action_id: $next_hop
       params { param_id: 1 value: "\\002" } params { param_id: 2 value: "\\002" }
       params { param_id: 3 value: "\\003" } } } }""",
]
PROGRAMS = {"ofan": TO_GROUP, "ecmp": TO_GROUP, "router": ROUTED}


@lru_cache
def compiled(name: str) -> Program:
    """Return a compiled program: one of ours, or one beside the benchmarks."""
    if name in ("ofan", "ecmp"):
        return compile_file(p4src.path(name), defines={"MAX_UPLINKS": "8"})

    return compile_file(HERE / f"{name}.p4")


def entities(name: str) -> list[p4runtime_pb2.Entity]:
    """Return the table entries of a program."""
    info = compiled(name).p4info
    ids = {item.preamble.alias: item.preamble.id for item in (*info.tables, *info.actions)}
    texts = [
        re.sub(r"\$(\w+)", lambda reference: str(ids[reference[1]]), text)
        for text in PROGRAMS[name]
    ]

    return [text_format.Parse(text, p4runtime_pb2.Entity()) for text in texts]


def frame(size: int, label: int = 1) -> bytes:
    """Return a RoCEv2 frame of `size` bytes, without checksum."""
    total = size - 14
    fields = [
        0x4500,
        total,
        1,
        0,
        64 << 8 | 17,
        0,
        0x0A00,
        0x0002,
        DESTINATION >> 16,
        DESTINATION & 0xFFFF,
    ]

    fields[5] = 0xFFFF - sum(fields) % 0xFFFF
    header = struct.pack(">10H", *fields)
    udp = struct.pack(">HHHH", label, 4791, total - 20, 0)

    return (
        bytes.fromhex("020000000001020000000002") + b"\x08\x00" + header + udp + bytes(total - 28)
    )


def hello() -> p4runtime_pb2.StreamMessageRequest:
    """Return the arbitration message that makes a controller primary."""
    message = p4runtime_pb2.StreamMessageRequest()
    message.arbitration.device_id = 1
    message.arbitration.election_id.low = 1

    return message


def pipeline(name: str) -> p4runtime_pb2.SetForwardingPipelineConfigRequest:
    """Return the request that sets a program."""
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1, action=3)
    request.election_id.low = 1
    request.config.p4info.CopyFrom(compiled(name).p4info)
    request.config.p4_device_config = json.dumps(compiled(name).json).encode()

    return request


def inserts(name: str) -> p4runtime_pb2.WriteRequest:
    """Return the request that inserts a program's entries."""
    request = p4runtime_pb2.WriteRequest(device_id=1)
    request.election_id.low = 1
    for entity in entities(name):
        request.updates.add(type=p4runtime_pb2.Update.INSERT, entity=entity)

    return request


def programmed(name: str) -> Switch:
    """Return a switch that runs a program with its entries."""
    switch = Switch(
        1, clock=lambda: 0, random=random.Random(1).randint, ports=(IN, OUT), cpu_port=CPU
    )
    service = P4RuntimeService(switch)
    service.open_stream(lambda _message: None).receive(hello())
    service.set_pipeline(pipeline(name))
    service.write(inserts(name))

    return switch
