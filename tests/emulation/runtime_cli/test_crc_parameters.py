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
from typing import Any, NamedTuple

import pytest

from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.base.crcs import Parameters
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.rpc import Client
from tests.emulation.compiler import bmv2_bench
from tests.emulation.runtime_cli.conftest import Running, name_of, script, switch
from tests.emulation.softswitch.division import divided

PROGRAM = Path(__file__).with_name("crcs.p4")
BMV2_PORT = 22_500
SETTINGS = 24


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    return compile_file(PROGRAM).json


@pytest.fixture(scope="module")
def path(compiled: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("crcs") / "crcs.json"
    file.write_text(json.dumps(compiled))
    return file


@pytest.fixture(scope="module")
def hashing(path: Path) -> Iterator[Running]:
    with switch(path) as running_switch:
        yield running_switch


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
    form = m.Crc16Config if bits == 16 else m.Crc32Config
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

    other_16 = Parameters(0x1021, 0xB2AA, 7, reflect_data=True, reflect_remainder=False)
    other_32 = Parameters(
        0x1EDC6F41, 0xFFFFFFFF, 0xFFFF0000, reflect_data=False, reflect_remainder=True
    )

    small, large = divided(hashed, 16, other_16), divided(hashed, 32, other_32)

    assert status == 0
    assert before[2:6] == zlib.crc32(hashed).to_bytes(4, "big")
    assert after[:6] == small.to_bytes(2, "big") + large.to_bytes(4, "big")


class Setting(NamedTuple):
    """Parameters for a calculation, and the packet that comes behind them."""

    calculation: int
    parameters: Parameters
    frame: bytes

    def command(self) -> str:
        """Return the line of the command line that sets them."""
        parameters = self.parameters
        return (
            f"set_crc{16 << self.calculation}_parameters calc_{self.calculation}"
            f" {parameters.polynomial:#x} {parameters.initial} {parameters.final_xor:#x}"
            f" {parameters.reflect_data} {parameters.reflect_remainder}"
        )


def settings() -> list[Setting]:
    """Return parameters for both calculations in turn."""
    draw = Random(1)
    drawn = []
    for number in range(SETTINGS):
        limit = 1 << (16 << number % 2)
        polynomial, initial, final_xor = (draw.randrange(limit) for _ in range(3))
        parameters = Parameters(
            polynomial,
            initial,
            final_xor,
            reflect_data=draw.random() < 0.5,
            reflect_remainder=draw.random() < 0.5,
        )
        drawn.append(Setting(number % 2, parameters, draw.randbytes(14)))

    return drawn


def ours(compiled: dict[str, Any], engine: Engine) -> list[bytes]:
    """Return the packets that leave our switch."""
    target = Switch(1, lambda: 0, lambda low, _high: low, range(8), engine=engine)
    target.load(json.dumps(compiled).encode())
    assert target.pipeline is not None
    sent = []
    for setting in settings():
        target.pipeline.custom_crcs[setting.calculation].configure(setting.parameters)
        [waiting] = target.ingress(1, setting.frame)
        sent += [packet.frame for packet in target.egress(waiting)]

    return sent


def test_both_engines_send_the_same(compiled: dict[str, Any]) -> None:
    assert ours(compiled, "native") == ours(compiled, "python")


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which(bmv2_bench.SWITCH) is None, reason=f"{bmv2_bench.SWITCH} is not on the PATH"
)
def test_bmv2_sends_the_same(compiled: dict[str, Any], tmp_path: Path) -> None:
    files = bmv2_bench.started(tmp_path, compiled, BMV2_PORT, inputs=[1], ports=[1, 2])
    with files as (_, pipes):
        time.sleep(bmv2_bench.QUIET_S)
        for number, setting in enumerate(settings(), 1):
            assert script(BMV2_PORT, setting.command()) == (0, [""])

            head = struct.pack("<IIII", number, 0, len(setting.frame), len(setting.frame))
            pipes[1].write(head + setting.frame)
            time.sleep(0.05)

        bmv2_bench.close(pipes)
        time.sleep(bmv2_bench.QUIET_S)

    assert bmv2_bench.captured(tmp_path / "2_out.pcap") == ours(compiled, "native")
