"""A held network refuses bad commands in one line each, and goes on."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from emulation.errors import EmulationError
from emulation.held.commands import Held, with_messages
from emulation.held.messages import SOCKET, StartTraffic, request_line
from emulation.held.server import control_server
from emulation.mininet.building import Setup, mininet_fabric
from fattree.experiment.model import Scenario

SCENARIO = Scenario(
    fabric={"k": 2, "rate_gbps": 0.0016, "latency_ns": 6e6},
    collective={"message_bytes": 16_384},
)
SIZES = (10**15, 10**23, 2**40 - 1, 0, -1)
BAD = (
    *(json.dumps({"command": "traffic_start", "message_bytes": size}) for size in SIZES),
    '{"command": "traffic_start", "message_bytes": 1.5}',
    '{"command": "traffic_start", "message_bytes": 1e23}',
    '{"command": "traffic_start", "message_bytes": true}',
    '{"command": "link", "name": 5, "up": false}',
    '{"command": "link", "name": "5", "up": false}',
    '{"command": "link", "name": "5-6", "up": false}',
    '{"command": "link", "name": "edge0_0-core9_9", "up": false}',
    '{"command": "schedule", "switch": 7}',
    '{"command": "pointers", "switch": "core"}',
    '{"command": "registers", "switch": "core"}',
    '{"command": "traffic_stop"}',
    "[" * 5000,
)


@pytest.mark.parametrize("size", SIZES)
def test_a_size_that_makes_no_sense_is_one_line(size):
    with pytest.raises(EmulationError, match=rf"^message_bytes = {size}: [^\n]+$"):
        with_messages(SCENARIO, size)


def test_a_size_that_makes_sense_is_taken():
    assert with_messages(SCENARIO, 4096).collective.message_bytes == 4096


@pytest.mark.root
def test_bad_commands_do_not_end_a_held_network(tmp_path):
    with mininet_fabric(SCENARIO, Setup(folder=tmp_path / "ofan")) as fabric:
        held = Held(fabric, lambda _line: None)
        door = fabric.folder / SOCKET

        def ask(line):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(30)
                client.connect(str(door))
                client.sendall(line)
                return json.loads(client.makefile().readline())

        def talk():
            refusals = [ask(line.encode() + b"\n") for line in BAD]
            return refusals, ask(request_line(StartTraffic(None, wait=True)))

        with (
            control_server(fabric.folder, fabric.loop.selector, held.handlers),
            ThreadPoolExecutor(1) as pool,
        ):
            talking = pool.submit(talk)
            fabric.loop.run(lambda: held.tick() or talking.done())
            refusals, done = talking.result()

    for line, refusal in zip(BAD, refusals, strict=True):
        assert list(refusal) == ["error"] and "\n" not in refusal["error"], line
        assert "mistake of ours" not in refusal["error"], line
    assert "complete in" in done["answer"] and "0 unaccounted for" in done["answer"]
