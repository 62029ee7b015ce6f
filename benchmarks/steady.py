"""The switch at a steady rate, and with few frames under way: CPU a packet, and how long they take.

Beside it the plain forwarder of `steady.c` on the same wires, which looks at nothing: its cost is
the cost of Linux. simple_switch_grpc has its turn where it is installed.

    sudo python -m benchmarks.steady                a minute a program
    sudo python -m benchmarks.steady --json FILE --program ofan --seconds 10

`steady.c` is built with `cc -O2`, into a temporary folder. Times are from `send` to `recv` of the
generator, so that its own system calls and the kernel's two ways through a veth pair are in them.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from benchmarks.rates.programs import PROGRAMS, SIZES, frame, inserts, pipeline
from benchmarks.rates.wires import BMV2, OURS, WAIT_S, cpu_s, enter_namespace, ip, running, veths

SOURCE = Path(__file__).with_suffix(".c")
PLAIN = "plain forwarder"
RATES = (5_000, 50_000, 500_000)
WINDOWS = (1, 8, 30, 128)
# As fast as the window allows; as many under way as the rate makes.
ANY_RATE, ANY_WINDOW = 1e9, 1 << 30


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: `rate` frames a second are offered, or a window of them kept under way."""

    switch: str
    program: str
    size: str
    rate: int | None
    window: int | None
    sent: int
    received: int
    wall_s: float
    cpu_s: float
    p50_us: float
    p99_us: float

    @property
    def cpu_us(self) -> float:
        """Microseconds of the switch's CPU time a packet that has come through."""
        return self.cpu_s / max(1, self.received) * 1e6


@contextmanager
def forwarder(steady: Path) -> Iterator[int]:
    """Run the plain forwarder from s1 to s2; yield its process id."""
    command = [str(steady), "forward", "s1", "s2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            # Its first line means that it is ready.
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def built(folder: Path) -> Path:
    """Build `steady.c`."""
    if shutil.which("cc") is None:
        raise click.ClickException("a C compiler is missing (cc)")

    steady = folder / "steady"
    subprocess.run(["cc", "-O2", "-Wall", "-o", steady, SOURCE], check=True)

    return steady


def measured(steady: Path, pid: int, names: tuple[str, str, str], seconds: float) -> Iterator[Row]:
    """Measure a process that moves frames from s1 to s2; `names`: switch, program, size."""
    switch, program, size = names
    loads = [(rate, None) for rate in RATES] + [(None, window) for window in WINDOWS]
    for rate, window in loads:
        arguments = [rate or ANY_RATE, window or ANY_WINDOW, seconds, frame(SIZES[size]).hex()]
        before = cpu_s(pid)
        done = subprocess.run(
            [steady, "traffic", "i0", "i1", *map(str, arguments)],
            check=True,
            capture_output=True,
            text=True,
        )
        spent = cpu_s(pid) - before
        yield Row(switch, program, size, rate, window, **json.loads(done.stdout), cpu_s=spent)


def on_wires(programs: list[str], size: str, seconds: float) -> Iterator[Row]:
    """Measure the forwarder, then each switch with each program, on the same wires."""
    with tempfile.TemporaryDirectory() as name, veths(mtu=1500):
        folder = Path(name)
        steady = built(folder)
        with forwarder(steady) as pid:
            yield from measured(steady, pid, (PLAIN, PLAIN, size), seconds)

        for kind in [OURS, *([BMV2] if shutil.which(BMV2) else [])]:
            with running(kind, folder) as (pid, stub):
                for program in programs:
                    stub.SetForwardingPipelineConfig(pipeline(program), timeout=WAIT_S)
                    stub.Write(inserts(program), timeout=WAIT_S)
                    yield from measured(steady, pid, (kind, program, size), seconds)


def line(row: Row) -> str:
    """Return a row as text."""
    load = f"{row.rate:,}/s" if row.rate else f"{row.window} under way"
    took = f"{row.p50_us:9.1f} {row.p99_us:9.1f}" if row.p50_us >= 0 else f"{'lost':>9} {'':>9}"
    rate = row.received / row.wall_s

    return (
        f"{row.switch:<19} {row.program:<16} {load:>14} {row.cpu_us:9.2f} {took}"
        f" {rate:11,.0f} {row.sent - row.received:9,}"
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--inside", is_flag=True, hidden=True)
@click.option("--program", "programs", multiple=True, type=click.Choice(list(PROGRAMS)))
@click.option("--size", type=click.Choice(list(SIZES)), default="64 B", show_default=True)
@click.option("--seconds", type=float, default=5.0, show_default=True, help="Length of a load.")
@click.option(
    "--json",
    "rows_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the rows as JSON.",
)
def main(
    inside: bool, programs: tuple[str, ...], size: str, seconds: float, rows_file: Path | None
) -> None:
    """Measure CPU a packet and times at steady rates and with few frames under way (root)."""
    if not inside:
        enter_namespace("benchmarks.steady")

    ip("link set lo up")
    print(
        f"{'switch':<19} {'program':<16} {'load':>14} {'CPU us':>9} {'p50 us':>9} {'p99 us':>9}"
        f" {'per s':>11} {'lost':>9}"
    )
    rows = []
    for row in on_wires(list(programs or PROGRAMS), size, seconds):
        rows.append(row)
        print(line(row), flush=True)

    if rows_file is not None:
        measurements = [{**asdict(row), "cpu_us": row.cpu_us} for row in rows]
        rows_file.write_text(json.dumps({"rows": measurements}, indent=2) + "\n")


if __name__ == "__main__":
    main()
