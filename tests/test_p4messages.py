"""P4Runtime messages: protobuf's compiled back end makes them of the published descriptions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import p4messages

ROUND_TRIP = """
import controller
from google.protobuf.internal import api_implementation
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

update = p4runtime_pb2.WriteRequest().updates.add(type=p4runtime_pb2.Update.INSERT)
update.entity.table_entry.match.add(field_id=1).exact.value = b"\\x07"
again = p4runtime_pb2.Update.FromString(update.SerializeToString())
assert again == update and again.entity.WhichOneof("entity") == "table_entry"
assert p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT == 3
assert isinstance(p4runtime_pb2.ForwardingPipelineConfig().p4info, p4info_pb2.P4Info)
assert p4runtime_pb2_grpc.P4RuntimeStub
print(api_implementation.Type())
"""
AS_GENERATED_TODAY = "DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile(b'...')"


def back_end(choice: str) -> str:
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": choice}
    command = [sys.executable, "-c", ROUND_TRIP]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize("choice", ["upb", "python"])
def test_messages_work_on_either_back_end(choice: str) -> None:
    assert back_end(choice) == choice


def test_modules_of_another_generator_are_left_to_python(tmp_path: Path) -> None:
    (tmp_path / "new_pb2.py").write_text(AS_GENERATED_TODAY)
    finder = p4messages.Finder()
    assert finder.find_spec("p4.v1.new_pb2", [str(tmp_path)]) is None
    assert finder.find_spec("p4.v1.none_pb2", [str(tmp_path)]) is None
    assert finder.find_spec("google.rpc.status_pb2", None) is None


def test_it_is_installed_once() -> None:
    p4messages.install()
    p4messages.install()
    assert sum(isinstance(finder, p4messages.Finder) for finder in sys.meta_path) == 1
