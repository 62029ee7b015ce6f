"""`ofan p4 compile`: the compiler on the command line, with the options of p4c that matter."""

from __future__ import annotations

import json
from pathlib import Path

import click

from emulation.compiler import CompileError, Program, compile_file
from emulation.compiler.backend.p4info_files import p4info_bytes


@click.command("compile")
@click.argument("program", type=click.Path(dir_okay=False))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="BMv2 JSON file (default: PROGRAM.json here).",
)
@click.option(
    "--p4runtime-files",
    default="",
    metavar="FILE[,FILE]",
    help="P4Info files: binary protobuf for .bin and .pb, JSON for .json, text for other suffixes.",
)
@click.option(
    "-I", "include_dirs", multiple=True, metavar="DIR", help="Search DIR for included files."
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
# Makefiles written for p4c pass these; each has one value that we could mean, so it is taken and
# ignored.
@click.option("--std", "--p4v", "_std", type=click.Choice(["16", "p4-16", "p4_16"]), hidden=True)
@click.option("--arch", "_arch", type=click.Choice(["v1model"]), hidden=True)
@click.option("--target", "_target", type=click.Choice(["bmv2"]), hidden=True)
def compile_command(
    program: str,
    output: str | None,
    p4runtime_files: str,
    include_dirs: tuple[str, ...],
    defines: tuple[str, ...],
    _std: str | None,
    _arch: str | None,
    _target: str | None,
) -> None:
    """Compile a P4_16 v1model PROGRAM to BMv2 JSON and P4Info."""
    macros = {item.partition("=")[0]: item.partition("=")[2] or "1" for item in defines}
    try:
        compiled = compile_file(program, include_dirs, macros)
    except CompileError as error:
        raise click.ClickException(str(error)) from None

    try:
        _write(
            compiled,
            output or f"{Path(program).stem}.json",
            [item for item in p4runtime_files.split(",") if item],
        )
    except OSError as error:
        raise click.ClickException(f"cannot write {error.filename}: {error.strerror}") from None


def _write(compiled: Program, output: str, p4runtime_files: list[str]) -> None:
    Path(output).write_text(json.dumps(compiled.json, indent=2) + "\n", encoding="utf-8")
    for name in p4runtime_files:
        Path(name).write_bytes(p4info_bytes(compiled.p4info, Path(name).suffix))
