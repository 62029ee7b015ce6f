"""Programs with machine code that once ended the process, run apart, against Python's answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.native import machine

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header in_t {{ {fields} }}
struct headers_t {{ in_t h; }}
struct metadata_t {{ }}
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {{
    state start {{ p.extract(h.h); transition accept; }}
}}
control None(inout headers_t h, inout metadata_t m) {{ apply {{ }} }}
control In(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{
    apply {{ s.egress_spec = 2; {statement} }}
}}
control Out(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{ apply {{ }} }}
control Emit(packet_out p, in headers_t h) {{ apply {{ p.emit(h.h); }} }}
V1Switch(P(), None(), In(), Out(), None(), Emit()) main;
"""
CHILD = """
import sys
from tests.emulation.softswitch.test_native_crashes import answers
print(*answers(open(sys.argv[1], "rb").read(), sys.argv[2:], "native"))
"""


def answers(source: bytes, frames: list[str], engine: Engine) -> list[str]:
    """Return the frames that leave, in hexadecimal digits as those that come."""
    switch = Switch(1, lambda: 0, random=Random(1).randint, ports=range(4), engine=engine)
    switch.load(source)
    pending = [switch.ingress(0, bytes.fromhex(frame))[0] for frame in frames]

    return [switch.egress(packet)[0].frame.hex() for packet in pending]


def apart(source: bytes, frames: list[str], folder: Path) -> list[str]:
    """Return the answers of machine code in a process of its own, which has kept no code."""
    path = folder / "program.json"
    path.write_bytes(source)
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), *frames],
        env={**os.environ, "XDG_CACHE_HOME": str(folder)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr

    return run.stdout.split()


def compiled(fields: str, statement: str, folder: Path) -> str:
    path = folder / "program.p4"
    path.write_text(PROGRAM.format(fields=fields, statement=statement))
    return json.dumps(compile_file(path).json)


def test_a_hash_of_more_than_two_machine_words(tmp_path: Path) -> None:
    # LLVM read the checksum's table at a number of which it had not cut a byte out.
    fields = "bit<2> top; bit<6> n; bit<65> wide; bit<7> part; bit<32> hash;"
    chosen = "h.h.n != 0 ? (bit<65>) h.h.part : 65w127"
    statement = (
        f"hash(h.h.hash, HashAlgorithm.crc16, 32w0, "
        f"{{ h.h.top, {chosen}, h.h.wide }}, 32w0xffffffff);"
    )
    source = compiled(fields, statement, tmp_path).encode()
    draw = Random(1)
    frames = [draw.randbytes(14).hex() for _ in range(20)] + ["c0" + 13 * "00"]

    assert apart(source, frames, tmp_path) == answers(source, frames, "python")


# P4 has no division of signed numbers and none by a packet's value, but BMv2 JSON has.
@pytest.mark.parametrize("op", ["/", "%"])
@pytest.mark.parametrize("form", ["int<32>", "int<64>", "bit<96>"])
def test_division(form: str, op: str, tmp_path: Path) -> None:
    # Machines trap at the least number by -1; LLVM called a library that is not there.
    text = compiled(f"{form} a; {form} b;", "h.h.a = h.h.a - h.h.b;", tmp_path)

    assert text.count('"op": "-"') == 1

    source = text.replace('"op": "-"', f'"op": "{op}"').encode()
    bits = int(form[4:-1])
    numbers = (0, 1, 2, 7, 1 << 30, 1 << bits - 1, (1 << bits) - 7, (1 << bits) - 1)
    digits = [format(number, f"0{bits // 4}x") for number in numbers]
    frames = [dividend + divisor for dividend in digits for divisor in digits]

    assert apart(source, frames, tmp_path) == answers(source, frames, "python")


def test_code_that_calls_what_is_not_there_is_refused() -> None:
    divide = "define i128 @f(i128 %a, i128 %b) {\n %c = udiv i128 %a, %b\n ret i128 %c\n}\n"
    with pytest.raises(RuntimeError, match="LLVM calls __udivti3, which is not there"):
        machine.object_code(divide)
