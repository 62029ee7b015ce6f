"""The process in which a packet function of the user's runs: with no rights, and not for long.

It reads one JSON object from standard input: the function's file, and the frames to build. It
answers with these, or with a line on the file's error (`packet_answers`). The user's code prints to
nowhere. Modules that its file names are imported first: later the process has no files.
"""

import ast
import importlib
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from scapy.contrib.roce import BTH
from scapy.packet import Packet

from fattree.files.text_file import line_of_zero_byte
from hostagent.agents.confined import give_up_files
from hostagent.agents.process import CLONE_NEWNET, die_with_parent, give_up_root, libc
from hostagent.packet_answers import BAD, GOOD, packed

FUNCTIONS = ("data_packet", "ack_packet")
CPU_SECONDS = 5
MEMORY_BYTES = 1 << 30
FRAME_BYTES = 1 << 17
# Without modules that act when they are imported.
STANDARD = sys.stdlib_module_names - {"antigravity", "idlelib", "this"}
# Modules of Scapy's that a file names.
SCAPY = re.compile(r"\bscapy(?:\.\w+)+")


class FunctionError(Exception):
    """An error of the user's file, in a line."""


def give_up_rights() -> None:
    """Leave this process the means to compute: no files, no network."""
    if os.geteuid() == 0:
        libc.unshare(CLONE_NEWNET)

    give_up_files()
    give_up_root()
    for limit, bound in (
        # Time that is spent already counts, too.
        (resource.RLIMIT_CPU, int(time.process_time()) + CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        # A limit that is lower already stays.
        with suppress(ValueError):
            resource.setrlimit(limit, (bound, bound))


def functions(text: str, name: str) -> list[Callable[[Any], Any]]:
    """Run the user's file and return its functions."""
    if zero_at := line_of_zero_byte(text):
        raise FunctionError(f"{name}:{zero_at}: SyntaxError: there is a zero byte")

    space: dict[str, Any] = {"__name__": "agent_packet", "__file__": name}
    exec(compile(text, name, "exec", dont_inherit=True), space)
    for function in FUNCTIONS:
        if not callable(space.get(function)):
            raise FunctionError(f"{name}: there is no function {function}(flow)")

    return [space[function] for function in FUNCTIONS]


def import_named(text: str) -> None:
    """Import modules of Scapy and the standard library that a file names, while files exist."""
    for name in (*SCAPY.findall(text), *_standard(text)):
        # Of `scapy.fields.ByteField` the last part is no module; a wrong name shows later.
        with suppress(ImportError):
            importlib.import_module(name)


def _standard(text: str) -> Iterator[str]:
    """Yield the modules of the standard library that a file imports."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    # Reported with its line when the file is run.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return

    for node in nodes:
        match node:
            case ast.Import(names=names):
                named = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                named = [module]
            case _:
                continue

        yield from (name for name in named if name.split(".")[0] in STANDARD)


def built(function: Callable[[Any], Any], flow: SimpleNamespace, where: str) -> bytes:
    """Return an answer's frame: of a Scapy packet or of bytes."""
    packet = function(flow)
    bth_at = 0
    if isinstance(packet, Packet):
        bth = packet.getlayer(BTH)
        if bth is not None:
            # The frame's sender writes the ICRC.
            bth.icrc = 0
            bth_at = len(bytes(packet)) - len(bytes(bth))

        packet = bytes(packet)

    if not isinstance(packet, bytes):
        raise FunctionError(f"{where} returns {type(packet).__name__}, not a Scapy packet or bytes")
    if len(packet) > FRAME_BYTES:
        raise FunctionError(f"{where} returns {len(packet):,} bytes: a frame is shorter")

    return packed(packet, bth_at)


def answers(order: dict[str, Any]) -> Iterator[bytes]:
    """Yield the frames that an order asks for; raises FunctionError."""
    name = order["name"]
    try:
        both = functions(order["text"], name)
        payload = bytes(order["payload_bytes"])
        for kind, values, bitmap, less in order["asked"]:
            more = {"bitmap": bytes.fromhex(bitmap)} if kind else {"payload": payload[less:]}
            flow = SimpleNamespace(**values, **more)
            yield built(both[kind], flow, f"{name}: {FUNCTIONS[kind]}")
    except FunctionError:
        raise
    # An error of the user's code, SystemExit too, is reported with its line.
    except BaseException as error:
        line = _line(error, name)
        text = " ".join(str(getattr(error, "msg", error)).split()) or "no reason given"
        raise FunctionError(f"{name}{line}: {type(error).__name__}: {text}") from None


def _line(error: BaseException, name: str) -> str:
    if isinstance(error, SyntaxError) and error.filename == name:
        return f":{error.lineno or 1}"

    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == name
    ]
    return f":{lines[-1]}" if lines else ""


def main() -> None:
    """Answer the order on standard input."""
    die_with_parent(signal.SIGKILL)
    order = json.load(sys.stdin.buffer)
    import_named(order["text"])
    with os.fdopen(os.dup(1), "wb") as answer:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)

        give_up_rights()
        # From here on no more modules can be imported.
        sys.path.clear()
        try:
            frames = b"".join(answers(order))
        except FunctionError as error:
            answer.write(BAD + str(error).encode(errors="replace"))
        else:
            answer.write(GOOD + frames)


if __name__ == "__main__":
    main()
