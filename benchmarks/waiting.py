"""What people wait for: a program's loading, and commands from an empty cache and once more.

    python benchmarks/waiting.py                       our programs, a first run, the demo
    python benchmarks/waiting.py --loads-only router.p4 -I include -D PORTS=16

Every line is a process of its own, in seconds of CPU time: `first` with an empty cache, `again`
with what the first has kept. Loading is the compiler, then machine code for the switch.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import p4src

LOADING = """
import json, sys, time
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.pipeline import Pipeline

path, includes, defines = json.loads(sys.argv[1])
began_s = time.process_time()
source = json.dumps(compile_file(path, includes, defines).json).encode()
compiled_s = time.process_time()
Pipeline(source, random=None, has_port=lambda _: True, engine="native")
print(compiled_s - began_s, time.process_time() - compiled_s)
"""
OURS = [str(p4src.path(name)) for name in ("ofan", "adaptive", "host_dr")]
BIN = Path(sys.executable).parent
# What a quick start says: one run, then the demo.
COMMANDS = {"ofan sim run": ["sim", "run", "--k", "8"], "ofan demo": ["demo"]}
ROOT = Path(__file__).resolve().parents[1]


def alone(words: Sequence[str], cache: str) -> tuple[float, str]:
    """Run a command that keeps things in a folder; return its CPU seconds, and what it prints."""
    # A second process tells the times of the first alone.
    timed = ["bash", "-c", 'TIMEFORMAT="CPU %U %S"; time "$0" "$@"', *words]
    path = os.pathsep.join((str(ROOT), str(ROOT / "emulation" / "p4")))
    done = subprocess.run(
        timed,
        env={**os.environ, "XDG_CACHE_HOME": cache, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(f"{words[:3]}: {done.stderr}")

    user, system = re.findall(r"CPU ([\d.]+) ([\d.]+)", done.stderr)[-1]
    return float(user) + float(system), done.stdout


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.argument("programs", nargs=-1, type=click.Path(exists=True))
@click.option("-I", "includes", multiple=True, help="A folder with files that are included.")
@click.option("-D", "defines", multiple=True, help="NAME=VALUE, for the preprocessor.")
@click.option("--loads-only", is_flag=True, help="No commands.")
def main(
    programs: tuple[str, ...], includes: tuple[str, ...], defines: tuple[str, ...], loads_only: bool
) -> None:
    """Print one line for each program and command."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("what", "first s", "again s"):
        table.add_column(heading, justify="left" if heading == "what" else "right")

    given = dict(define.partition("=")[::2] for define in defines)
    for path in programs or OURS:
        asked = json.dumps([path, [*includes, str(p4src.INCLUDE)], given])
        with tempfile.TemporaryDirectory() as cache:
            rows = [
                alone([sys.executable, "-c", LOADING, asked], cache)[1].split() for _ in range(2)
            ]

        for place, what in enumerate(("compiler", "machine code")):
            cells = (f"{float(row[place]):.2f}" for row in rows)
            table.add_row(f"{Path(path).name}: {what}", *cells)

    for name, words in {} if loads_only else COMMANDS.items():
        with tempfile.TemporaryDirectory() as cache:
            seconds = [alone([str(BIN / "ofan"), *words], cache)[0] for _ in range(2)]

        table.add_row(name, *(f"{each:.1f}" for each in seconds))

    Console(width=100).print(table)


if __name__ == "__main__":
    main()
