"""The bytes of `p4_device_config`: BMv2 JSON, plain or in a P4DeviceConfig.

PI's P4Runtime server takes `p4.tmp.P4DeviceConfig`, which holds the JSON, and plain JSON; the
message went out of P4Runtime's repository, but many controllers still send it.
"""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

BYTES = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
OPTIONAL = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL


def _message() -> type:
    """Return the class of P4DeviceConfig, with the only field that is needed."""
    file = descriptor_pb2.FileDescriptorProto(
        name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3"
    )
    file.message_type.add(name="P4DeviceConfig").field.add(
        name="device_data", number=3, type=BYTES, label=OPTIONAL
    )
    # A pool of its own: a program that has the real message in the common pool is not disturbed.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig"))


P4DeviceConfig = _message()


def bmv2_json(device_config: bytes) -> bytes:
    """Return the JSON in a device configuration: in a P4DeviceConfig, or the bytes themselves."""
    # A brace would begin a group, which no P4DeviceConfig has.
    if device_config.startswith(b"{"):
        return device_config

    message = P4DeviceConfig()
    try:
        message.ParseFromString(device_config)
    except DecodeError:
        return device_config

    return message.device_data or device_config
