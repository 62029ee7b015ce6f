"""The switch's machine code: between rings in plain memory, and flooded through veth pairs.

Beside it a plain forwarder, the same loop and rings with a program that looks at nothing: its rate
is the limit that Linux leaves for a program.

    python -m benchmarks.bursts                     in process: ofan, ecmp, router
    sudo python -m benchmarks.bursts --veth         also flooded through veths, in a namespace

Through veths simple_switch_grpc has its turn on the same wires, too, where it is installed.
Rates are per second of the switch's CPU time. In process the best of many runs counts.
"""

import ctypes
import json
import multiprocessing
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.rates.programs import PROGRAMS, SIZES, frame, inserts, pipeline, programmed
from benchmarks.rates.rows import Row, table_of
from benchmarks.rates.wires import BMV2, OURS, WAIT_S, cpu_s, enter_namespace, ip, running, veths
from ofan_p4.softswitch.control.pipeline import DROP_PORT
from ofan_p4.softswitch.control.switch import Counts
from ofan_p4.softswitch.daemon.bursts import Bursts, compiled_bursts
from ofan_p4.softswitch.daemon.ports import Port
from ofan_p4.softswitch.daemon.sockets import open_interface
from ofan_p4.softswitch.native import burst_code, turn_code
from ofan_p4.softswitch.native.slots import address

FRAMES = 1024
FRAME_BYTES = 2048
# Where the kernel puts a frame behind its header, with some room.
MAC = 80
PLAIN = "plain forwarder"
BURST = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 7, ctypes.c_void_p, *[ctypes.c_int64] * 4)
i64 = numba.int64
pointer = numba.types.CPointer(numba.uint8)


@numba.cfunc(i64(i64, pointer, i64, i64, i64, i64, i64, pointer))
def to_port_2(_context, _data, _avail, _n, _port, _length, _now, state):  # type: ignore[no-untyped-def]
    """Send everything out of port 2."""
    outcome = numba.carray(state, (16,))
    for i in range(16):
        outcome[i] = 2 * (i == 0)

    return 0


@numba.cfunc(i64(i64, pointer, i64, i64, pointer, *[i64] * 10, pointer))
def as_it_is(  # type: ignore[no-untyped-def]
    _context, data, avail, n, _state, _0, _1, _2, _3, _4, _5, _6, _7, _8, _9, out
):
    """Copy the frame."""
    source = numba.carray(data, (avail,))
    target = numba.carray(out, (avail,))
    for i in range(avail):
        target[i] = source[i]

    return n


class Nothing:
    """The functions of the plain forwarder, as `Bursts` asks for them."""

    growth = 0
    settle = staticmethod(lambda: None)
    burst_state = bytes(16)
    # Bursts compare egress_spec with the first word, the port that means drop.
    context = np.full(1, DROP_PORT, np.uint64)
    addresses = (address(context), to_port_2.address, as_it_is.address)


def ring(frames: list[bytes]) -> NDArray[np.uint8]:
    """Return a ring of plain memory with these frames in turn; their status is the kernel's."""
    memory = np.zeros((FRAMES, FRAME_BYTES), np.uint8)
    for i, row in enumerate(memory):
        content = frames[i % len(frames)]
        row[MAC : MAC + len(content)] = np.frombuffer(content, np.uint8)
        row[burst_code.LEN : burst_code.LEN + 8].view(np.uint32)[:] = len(content)
        row[burst_code.MAC : burst_code.MAC + 2].view(np.uint16)[:] = MAC

    return memory


def in_process(name: str, size: str, runs: int) -> Row:
    """Measure a program from ring to ring, without the kernel."""
    functions: Any = Nothing()
    if name != PLAIN:
        switch = programmed(name)
        assert switch.pipeline is not None and switch.pipeline.functions is not None
        functions = switch.pipeline.functions
        functions.settle()

    received = ring([frame(SIZES[size], label) for label in range(256)])
    sent = np.zeros_like(received)
    port_words = np.zeros((2, burst_code.PORT_WORDS), np.uint64)
    for port, row in enumerate(port_words, 1):
        row[burst_code.NUMBER] = port
        row[burst_code.RX_BASE : burst_code.RX_NEXT] = (address(received), FRAMES, FRAME_BYTES)
        row[burst_code.TX_BASE : burst_code.TX_NEXT] = (address(sent), FRAMES, FRAME_BYTES)
        row[burst_code.TX_MOST] = FRAME_BYTES

    of_port = np.zeros(burst_code.PORT_NUMBERS, np.int64)
    of_port[1:3] = (1, 2)
    report = np.zeros(burst_code.REPORT_WORDS, np.int64)
    burst = BURST(compiled_bursts().addresses[0])
    best = float("inf")
    for _ in range(runs):
        received[:, burst_code.STATUS] = burst_code.TP_STATUS_USER
        sent[:, burst_code.STATUS : burst_code.LEN] = 0
        port_words[:, [burst_code.RX_NEXT, burst_code.TX_NEXT]] = 0
        arguments = (
            *(address(port_words), 0, address(of_port)),
            *(*functions.addresses, functions.burst_state),
            *(0, FRAMES + 1, functions.growth, address(report)),
        )
        started = time.process_time_ns()
        burst(*arguments)
        best = min(best, (time.process_time_ns() - started) / 1e9)

    assert report[burst_code.TRANSMITTED] == runs * FRAMES, report
    return Row(
        "in process", switch=OURS, program=name, size=size, packets=FRAMES, cpu_s=best, wall_s=best
    )


def forward(stop: Any) -> None:
    """Run the plain forwarder from s1 to s2 until `stop` is set."""
    ports = {
        number: Port(
            number,
            f"s{number}",
            open_interface(f"s{number}"),
            (),
            is_immediate=True,
            index=socket.if_nametoindex(f"s{number}"),
        )
        for number in (1, 2)
    }
    bursts = Bursts(ports.values(), wanted=True)
    counts = Counts()
    functions: Any = Nothing()
    while not stop.is_set():
        soon_ns = time.monotonic_ns() + 100_000_000
        end = bursts.take_turns(functions, deadline_ns=soon_ns, start_ns=0, counts=counts)
        if end == turn_code.UNSENT:
            bursts.port().push()


def send_all_the_time(size: int, stop: Any) -> None:
    """Send frames into i0 as fast as the kernel takes them."""
    frames = [frame(size, label) for label in range(256)]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
        sock.bind(("i0", 0))
        while not stop.is_set():
            for content in frames:
                with suppress(OSError):
                    sock.send(content)


def flooded(pid: int, seconds: float, *, switch: str, program: str, size: str) -> Row:
    """Measure how many frames a process sends on while more arrive than it can take."""
    stop = multiprocessing.Event()
    sender = multiprocessing.Process(
        target=send_all_the_time, args=(SIZES[size], stop), daemon=True
    )
    sender.start()
    time.sleep(1)
    # Arrivals are read last at the start and first at the end, so that no frame under way counts
    # as an arrival that was never offered.
    offered = -counted("s1", "rx_packets")
    came = -counted("i1", "rx_packets")
    busy = -cpu_s(pid)
    started = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - started
    busy += cpu_s(pid)
    came += counted("i1", "rx_packets")
    offered += counted("s1", "rx_packets")
    stop.set()
    sender.join()
    return Row(
        "flooded",
        switch=switch,
        program=program,
        size=size,
        packets=came,
        cpu_s=busy,
        wall_s=passed,
        lost=offered - came,
    )


def counted(interface: str, name: str) -> int:
    """Return a counter of an interface of this namespace (`/sys` would show another's)."""
    listing = subprocess.run(
        ["ip", "-s", "-j", "link", "show", interface], check=True, capture_output=True
    )
    way, _, counter = name.partition("_")
    return int(json.loads(listing.stdout)[0]["stats64"][way][counter])


def on_wires(seconds: float) -> Iterator[Row]:
    """Measure the forwarder and the switches on the same wires, one after the other."""
    with veths(mtu=1500) as _ends:
        for size in SIZES:
            stop = multiprocessing.Event()
            process = multiprocessing.Process(target=forward, args=(stop,), daemon=True)
            process.start()
            assert process.pid is not None
            yield flooded(process.pid, seconds, switch=PLAIN, program=PLAIN, size=size)
            stop.set()
            process.join()

        for kind in [OURS, *([BMV2] if shutil.which(BMV2) else [])]:
            with (
                tempfile.TemporaryDirectory() as folder,
                running(kind, Path(folder)) as (pid, stub),
            ):
                for name in PROGRAMS:
                    stub.SetForwardingPipelineConfig(pipeline(name), timeout=WAIT_S)
                    stub.Write(inserts(name), timeout=WAIT_S)
                    for size in SIZES:
                        yield flooded(pid, seconds, switch=kind, program=name, size=size)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--veth", is_flag=True, help="Measure through veth pairs too (root).")
@click.option("--inside", is_flag=True, hidden=True)
@click.option("--runs", type=click.IntRange(1), default=300, show_default=True)
@click.option("--seconds", type=float, default=5.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def main(veth: bool, inside: bool, runs: int, seconds: float, as_json: bool) -> None:
    """Measure the switch's machine code."""
    if veth and not inside:
        enter_namespace("benchmarks.bursts")

    rows = [in_process(name, size, runs) for name in (PLAIN, *PROGRAMS) for size in SIZES]
    if veth:
        ip("link set lo up")
        rows += on_wires(seconds)

    if as_json:
        kinds = ("where", "switch", "program", "size", "packets", "per_cpu_s", "per_s", "lost")
        print(json.dumps([{name: getattr(row, name) for name in kinds} for row in rows], indent=2))
    else:
        print("\n".join(table_of(rows)))


if __name__ == "__main__":
    main()
