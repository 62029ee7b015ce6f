"""Packets per second of the switch: in process, and through veth pairs.

Beside simple_switch_grpc where it is installed.

    python benchmarks/switch.py                     in process: three programs, and ternary tables
    sudo python benchmarks/switch.py --veth         also through veth pairs, in a namespace
    sudo python benchmarks/switch.py --veth --json rows.json --chart switch.svg

One port in, one port out; frames of 60 bytes (64 with their checksum) and of IPv4 packets of 1,500
bytes. Rates are per second of the switch's CPU time, so that a busy machine does not change them
much. Through veths a window of frames is kept under way, so few that no queue on the way of either
switch is full.
"""

import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.rates.programs import (
    CPU,
    IN,
    OUT,
    PROGRAMS,
    SIZES,
    compiled,
    frame,
    inserts,
    pipeline,
    programmed,
)
from benchmarks.rates.rows import Row, draw, table_of
from benchmarks.rates.wires import (
    BMV2,
    OURS,
    WAIT_S,
    cpu_s,
    enter_namespace,
    ip,
    running,
    through,
    veths,
)
from ofan_p4.softswitch.control.switch import Switch


def in_process(name: str, size: str, packets: int) -> Row:
    """Measure a program without sockets and queues; the best of three runs."""
    switch = programmed(name)
    frames = [frame(SIZES[size], label) for label in range(256)]
    return _best(switch, frames, packets, name=name, size=size)


def ternary(entries: int, masks: int, packets: int) -> Row:
    """Measure an access list with so many entries, which have so many different masks."""
    rng = random.Random(1)
    switch = Switch(1, clock=lambda: 0, random=rng.randint, ports=(IN, OUT), cpu_port=CPU)
    switch.load(json.dumps(compiled("acl").json).encode())
    assert switch.pipeline is not None
    table = switch.pipeline.tables[0]
    permit = next(
        number
        for number, action in switch.pipeline.program.actions.items()
        if action.name.endswith("permit")
    )

    bits = [key.bits for key in table.spec.key]
    chosen = [[rng.getrandbits(width) for width in bits] for _ in range(masks)]
    for priority in range(1, entries + 1):
        match = tuple(
            (rng.getrandbits(width) & mask, mask)
            for width, mask in zip(bits, rng.choice(chosen), strict=True)
        )

        table.insert(match, priority, permit, (OUT,))

    return _best(
        switch,
        frames=[rng.randbytes(14) for _ in range(256)],
        packets=packets,
        name=f"acl, {entries:,} entries, {masks:,} masks",
        size="14 B",
    )


def _best(switch: Switch, frames: list[bytes], packets: int, name: str, size: str) -> Row:
    ingress = switch.ingress
    egress = switch.egress
    best = float("inf")

    for _ in range(3):
        started = time.process_time()
        for _ in range(packets // len(frames)):
            for data in frames:
                for pending in ingress(IN, data):
                    egress(pending)

        best = min(best, time.process_time() - started)

    done = packets // len(frames) * len(frames)
    assert switch.counts.transmitted == 3 * done, switch.counts
    return Row(
        "in process", switch=OURS, program=name, size=size, packets=done, cpu_s=best, wall_s=best
    )


def on_wires(kind: str, names: list[str], seconds: float) -> Iterator[Row]:
    """Measure a switch through veth pairs, program after program on the same wires."""
    with (
        tempfile.TemporaryDirectory() as folder,
        veths() as ends,
        running(kind, Path(folder)) as (pid, stub),
    ):
        for name in names:
            stub.SetForwardingPipelineConfig(pipeline(name), timeout=WAIT_S)
            stub.Write(inserts(name), timeout=WAIT_S)
            for size, length in SIZES.items():
                frames = [frame(length, label) for label in range(256)]
                through(ends, frames, 0.5)
                before = cpu_s(pid)
                started = time.monotonic()
                received, lost = through(ends, frames, seconds)
                yield Row(
                    "veth",
                    switch=kind,
                    program=name,
                    size=size,
                    packets=received,
                    cpu_s=cpu_s(pid) - before,
                    wall_s=time.monotonic() - started,
                    lost=lost,
                )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--veth", is_flag=True, help="Measure through veth pairs too (root).")
@click.option("--inside", is_flag=True, hidden=True)
@click.option(
    "--packets",
    type=click.IntRange(1000),
    default=100_000,
    show_default=True,
    help="Packets of a run in process.",
)
@click.option(
    "--seconds", type=float, default=5.0, show_default=True, help="Length of a run through veths."
)
@click.option(
    "--json",
    "rows_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the rows as JSON.",
)
@click.option("--chart", type=click.Path(path_type=Path, dir_okay=False), help="Draw the rates.")
def main(
    veth: bool,
    inside: bool,
    packets: int,
    seconds: float,
    rows_file: Path | None,
    chart: Path | None,
) -> None:
    """Measure packets per second of the switch."""
    if veth and not inside:
        enter_namespace()

    rows = [in_process(name, size, packets) for name in PROGRAMS for size in SIZES]
    rows += [
        ternary(entries, masks, packets // 10)
        for entries, masks in ((10, 5), (100, 20), (1000, 20), (1000, 1000))
    ]
    if veth:
        ip("link set lo up")
        for kind in [OURS, *([BMV2] if shutil.which(BMV2) else [])]:
            rows += on_wires(kind, list(PROGRAMS), seconds)

    print("\n".join(table_of(rows)))
    if veth and not shutil.which(BMV2):
        print(f"{BMV2} is not on the PATH: not measured")

    if rows_file is not None:
        rates = [{**asdict(row), "per_cpu_s": row.per_cpu_s, "per_s": row.per_s} for row in rows]
        rows_file.write_text(json.dumps({"rows": rates}, indent=2) + "\n")

    if chart is not None:
        draw(rows, chart)


if __name__ == "__main__":
    main()
