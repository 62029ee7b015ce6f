"""Parameters of CRCs, set while the switch runs: by the command line, on our switch and on BMv2."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.crcs import Parameters
from ofan_p4.softswitch.pipeline import Engine
from ofan_p4.softswitch.switch import Switch
from ofan_p4.softswitch.thrift import messages as m
from ofan_p4.softswitch.thrift.rpc import Client
from tests.emulation.compiler import bmv2_bench
from tests.emulation.runtime_cli.conftest import Running, name_of, switch
from tests.emulation.softswitch.division import divided

PROGRAM = Path(__file__).with_name("crcs.p4")
BMV2_PORT = 22_500
SETTINGS = 24


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    return compile_file(PROGRAM).json


@pytest.fixture(scope="module")
def path(compiled: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("crcs") / "crcs.json"
    found.write_text(json.dumps(compiled))
    return found


@pytest.fixture(scope="module")
def hashing(path: Path) -> Iterator[Running]:
    with switch(path) as found:
        yield found


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (
            "set_crc16_parameters calc_0 0x10000 0 0 true true",
            "Error: the polynomial has 16 bits, and 0x10000 does not fit",
        ),
        (
            "set_crc32_parameters calc_1 1 -1 0 true true",
            "Error: the initial remainder has 32 bits, and -1 does not fit",
        ),
        (
            "set_crc16_parameters calc_0 0x1021 0 0 yes true",
            "Error: whether data is reflected must be a number, not yes",
        ),
        (
            "set_crc32_parameters calc_0 1 0 0 true true",
            "Error: calculation calc_0 is by crc16_custom, not by crc32_custom",
        ),
        (
            "set_crc16_parameters calc_2 1 0 0 true true",
            "Error: calculation calc_2 is by crc16, not by crc16_custom",
        ),
        (
            "set_crc16_parameters calc_9 1 0 0 true true",
            "Error: no calculation is called calc_9",
        ),
    ],
)
def test_wrong_parameters_are_one_line(hashing: Running, line: str, answer: str) -> None:
    assert hashing.script(line) == (1, [answer])


@pytest.mark.parametrize(
    ("bits", "name", "code"),
    [
        (16, "calc_9", "INVALID_CALCULATION_NAME"),
        (16, "calc_1", "WRONG_TYPE_CALCULATION"),
        (32, "calc_2", "WRONG_TYPE_CALCULATION"),
    ],
)
def test_the_switch_itself_refuses_with_bmv2s_codes(
    hashing: Running, bits: int, name: str, code: str
) -> None:
    client = hashing.client()
    with pytest.raises(m.Refusal) as refused:
        configured(client, bits, name)

    client.close()

    assert refused.value.code is m.CrcError[code]


def configured(client: Client, bits: int, name: str) -> None:
    form = {16: m.Crc16Config, 32: m.Crc32Config}[bits]
    config = form(1, 0, 0, data_reflected=True, remainder_reflected=True)
    method = f"standard:bm_set_crc{bits}_custom_parameters"
    client.call(method, calc_name=name, **{f"crc{bits}_config": config})


@pytest.mark.root
def test_packets_are_hashed_with_the_parameters(
    path: Path, hosts: dict[int, socket.socket]
) -> None:
    ports = [word for port, sock in hosts.items() for word in ("-i", f"{port}@{name_of(sock)}s")]
    hashed = b"12345678"
    frame = bytes(6) + hashed + bytes(46)
    with switch(path, *ports) as running:
        hosts[1].send(frame)
        before = hosts[2].recv(2000)
        status, _ = running.script(
            "set_crc16_parameters calc_0 0x1021 0xb2aa 7 true False",
            "set_crc32_parameters calc_1 0x1edc6f41 4294967295 0xffff0000 0 1",
        )
        hosts[1].send(frame)
        after = hosts[2].recv(2000)

    small = divided(hashed, 16, Parameters(0x1021, 0xB2AA, 7, True, False))
    large = divided(hashed, 32, Parameters(0x1EDC6F41, 0xFFFFFFFF, 0xFFFF0000, False, True))

    assert status == 0
    assert before[2:6] == zlib.crc32(hashed).to_bytes(4, "big")
    assert after[:6] == small.to_bytes(2, "big") + large.to_bytes(4, "big")


def settings() -> list[tuple[str, str]]:
    """Return lines of the command line, each with the packet that comes behind it."""
    draw = Random(1)
    found = []
    for number in range(SETTINGS):
        bits = 32 if number % 2 else 16
        values = " ".join(f"{draw.randrange(1 << bits):#x}" for _ in range(3))
        flags = " ".join(draw.choice(("true", "false")) for _ in range(2))
        found.append(
            (
                f"set_crc{bits}_parameters calc_{number % 2} {values} {flags}",
                draw.randbytes(14),
            )
        )

    return found


def ours(compiled: dict[str, Any], engine: Engine) -> list[bytes]:
    """Return the packets that leave our switch."""
    target = Switch(1, lambda: 0, lambda low, _high: low, range(8), engine=engine)
    target.load(json.dumps(compiled).encode())
    assert target.pipeline is not None
    sent = []
    for line, frame in settings():
        words = line.split()
        numbers = [int(word, 0) for word in words[2:5]]
        flags = [word == "true" for word in words[5:]]
        target.pipeline.custom_crcs[int(words[1][-1])].configure(Parameters(*numbers, *flags))
        [waiting] = target.ingress(1, frame)
        sent += [packet.frame for packet in target.egress(waiting)]

    return sent


def test_both_engines_send_the_same(compiled: dict[str, Any]) -> None:
    assert ours(compiled, "native") == ours(compiled, "python")


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which(bmv2_bench.SWITCH) is None, reason=f"{bmv2_bench.SWITCH} is not on the PATH"
)
def test_bmv2_sends_the_same(compiled: dict[str, Any], tmp_path: Path) -> None:
    with bmv2_bench.started(tmp_path, compiled, BMV2_PORT, inputs=[1], ports=[1, 2]) as (
        process,
        pipes,
    ):
        time.sleep(bmv2_bench.QUIET_S)
        running = Running(process, BMV2_PORT)
        for number, (line, frame) in enumerate(settings(), 1):
            assert running.script(line) == (0, [""])

            head = struct.pack("<IIII", number, 0, len(frame), len(frame))
            pipes[1].write(head + frame)
            time.sleep(0.05)

        bmv2_bench.close(pipes)
        time.sleep(bmv2_bench.QUIET_S)

    assert bmv2_bench.captured(tmp_path / "2_out.pcap") == ours(compiled, "native")
