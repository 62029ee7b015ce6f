"""Throw damaged packets, programs and messages at the switch: it must not fail.

python -m benchmarks.fuzz_switch packets --count 10000000
    every program of p4src, damaged packets and all truncations
python -m benchmarks.fuzz_switch programs --count 20000
    damaged BMv2 JSON: one clear error, or a program that runs
python -m benchmarks.fuzz_switch server --count 20000
    hostile messages over real gRPC: a status, and it serves on
python -m benchmarks.fuzz_switch thrift --count 20000
    hostile calls of BMv2's runtime API over TCP: an answer or an end, and it serves on
"""

import json
import sys
from pathlib import Path

import click

import p4src
from benchmarks.fuzz.failure import FuzzFailure
from benchmarks.fuzz.packets import PROGRAMS, fuzz_packets
from benchmarks.fuzz.programs import fuzz_programs
from benchmarks.fuzz.server import fuzz_server
from benchmarks.fuzz.thrift import fuzz_thrift
from ofan_p4.compiler import compile_file

ROOT = Path(__file__).resolve().parents[1]


@click.group(help=__doc__.splitlines()[0], context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seed", type=int, default=1, show_default=True)
@click.pass_context
def main(context: click.Context, seed: int) -> None:
    """Fuzz the switch."""
    context.obj = seed


@main.command()
@click.option("--count", type=int, default=100_000, show_default=True, help="Packets per program.")
@click.option(
    "--program",
    "programs",
    multiple=True,
    type=click.Choice(PROGRAMS),
    help="Only this one; repeatable.",
)
@click.pass_obj
def packets(seed: int, count: int, programs: tuple[str, ...]) -> None:
    """Damaged packets, and every truncation of valid ones."""
    for program in programs or PROGRAMS:
        print(json.dumps(fuzz_packets(program, count, seed)), flush=True)


@main.command()
@click.option("--count", type=int, default=1000, show_default=True)
@click.pass_obj
def programs(seed: int, count: int) -> None:
    """Damaged BMv2 JSON: our programs and the compiler's test cases."""
    cases = sorted((ROOT / "tests" / "emulation" / "compiler" / "cases").glob("*.p4"))
    sources = [
        json.dumps(compile_file(path).json).encode()
        for path in [*map(p4src.path, PROGRAMS), *cases]
    ]

    print(json.dumps(fuzz_programs(sources, count, seed)))


@main.command("server")
@click.option("--count", type=int, default=1000, show_default=True)
@click.pass_obj
def server_command(seed: int, count: int) -> None:
    """Hostile P4Runtime messages over gRPC on a Unix socket."""
    print(json.dumps(fuzz_server(count, seed)))


@main.command("thrift")
@click.option("--count", type=int, default=1000, show_default=True)
@click.pass_obj
def thrift_command(seed: int, count: int) -> None:
    """Hostile calls of BMv2's runtime API over TCP on this machine."""
    print(json.dumps(fuzz_thrift(count, seed)))


if __name__ == "__main__":
    try:
        main()
    except FuzzFailure as failure:
        sys.exit(f"FAILED: {failure}")
