"""`ofan-p4 compile`: the compiler on the command line, with the options of p4c-bm2-ss."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from ofan_p4.compiler import (
    CompileError,
    CompileWarning,
    Program,
    compile_preprocessed,
    read_source,
)
from ofan_p4.compiler.backend.p4info_files import message_bytes
from ofan_p4.compiler.preprocessor import preprocess, with_markers

FORMATS = {"binary": ".bin", "json": ".json", "text": ".txt"}
# As p4c has them: `--Werror` alone means all kinds, and a kind comes with `=` only.
OPTIONAL_VALUES = ("--Wdisable", "--Werror", "--Wwarn")
ALL = "all"


class Command(click.Command):
    """A command with options that may have no value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line."""
        return super().parse_args(
            ctx, [f"{item}={ALL}" if item in OPTIONAL_VALUES else item for item in args]
        )


@dataclass(frozen=True)
class Outputs:
    """The files to write, by their content, and the folder to make for them."""

    json: str
    folder: str | None
    infos: tuple[tuple[str, str], ...]
    entries: tuple[str, ...]
    text: str | None


def _say_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        try:
            number = version("ofan-p4")
        except PackageNotFoundError:
            number = "unknown"

        click.echo(f"p4c-bm2-ss (Ofan)\nVersion {number}")
        ctx.exit()


@click.command("compile", cls=Command)
@click.argument("program", type=click.Path(dir_okay=False))
@click.option(
    "-o", "--output", help="BMv2 JSON file (default: PROGRAM.json here; p4c: a folder for it)."
)
@click.option(
    "--p4runtime-files",
    default="",
    metavar="FILE[,FILE]",
    help="P4Info files: binary protobuf for .bin and .pb, JSON for .json, text for other suffixes.",
)
@click.option("--p4runtime-file", metavar="FILE", help="A P4Info file in --p4runtime-format.")
@click.option(
    "--p4runtime-format",
    type=click.Choice(list(FORMATS)),
    default="binary",
    help="Format of --p4runtime-file (binary).",
)
@click.option(
    "--p4runtime-entries-files",
    default="",
    metavar="FILE[,FILE]",
    help="WriteRequests with the entries that the program declares.",
)
@click.option(
    "-I", "include_dirs", multiple=True, metavar="DIR", help="Search DIR for included files."
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
@click.option("-U", "undefines", multiple=True, metavar="NAME", help="Undefine a macro.")
@click.option("-E", "only_preprocess", is_flag=True, help="Print the preprocessed program only.")
@click.option("--pp", metavar="FILE", help="Write the preprocessed program too.")
@click.option("--emit-externs", is_flag=True, help="Leave externs that BMv2 lacks to its plug-ins.")
@click.option("--Wdisable", "disabled", multiple=True, metavar="[=KIND]", help="No such warnings.")
@click.option("--Werror", "errors", multiple=True, metavar="[=KIND]", help="They are errors.")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_say_version)
# `p4c` is called so: its -o names a folder.
@click.option("--driver", is_flag=True, hidden=True)
# Makefiles written for p4c pass these; each has only one value that makes sense here, so it is
# taken and ignored. The JSON always has source positions (-g).
@click.option(
    "--std", "--p4v", "-x", "_std", type=click.Choice(["16", "p4-16", "p4_16"]), hidden=True
)
@click.option("--arch", "-a", "_arch", type=click.Choice(["v1model"]), hidden=True)
@click.option("--target", "-b", "_target", type=click.Choice(["bmv2"]), hidden=True)
@click.option("-g", "_debug", is_flag=True, hidden=True)
@click.option("--Wwarn", "_warnings", multiple=True, hidden=True)
def compile_command(
    program: str,
    output: str | None,
    p4runtime_files: str,
    p4runtime_file: str | None,
    p4runtime_format: str,
    p4runtime_entries_files: str,
    include_dirs: tuple[str, ...],
    defines: tuple[str, ...],
    undefines: tuple[str, ...],
    only_preprocess: bool,
    pp: str | None,
    emit_externs: bool,
    disabled: tuple[str, ...],
    errors: tuple[str, ...],
    driver: bool,
    _std: str | None,
    _arch: str | None,
    _target: str | None,
    _debug: bool,
    _warnings: tuple[str, ...],
) -> None:
    """Compile a P4_16 v1model PROGRAM to BMv2 JSON and P4Info."""
    macros = {item.partition("=")[0]: item.partition("=")[2] or "1" for item in defines}
    named = Path(f"{Path(program).stem}.json")
    infos = [(name, Path(name).suffix) for name in _names(p4runtime_files)]
    if p4runtime_file:
        infos.append((p4runtime_file, FORMATS[p4runtime_format]))

    outputs = Outputs(
        str(Path(output or ".") / named if driver else output or named),
        folder=output if driver else None,
        infos=tuple(infos),
        entries=_names(p4runtime_entries_files),
        text=pp,
    )

    try:
        source = preprocess(read_source(program), program, include_dirs, macros, undefines)
        if only_preprocess:
            click.echo(with_markers(source), nl=False)
            return

        compiled = compile_preprocessed(source, program, emit_externs)
        _warn(compiled.warnings, disabled, errors)
        _write(compiled, with_markers(source) if pp else "", outputs)
        # A user who named the file knows; p4c prints nothing, and neither does this command under
        # p4c's name.
        if output is None and not driver:
            click.echo(f"wrote {outputs.json}", err=True)
    except CompileError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        # Of a full disk the error has no name.
        where = error.filename or outputs.json
        raise click.ClickException(f"cannot write {where}: {error.strerror}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(item for item in text.split(",") if item)


def _warn(
    warnings: Iterable[CompileWarning], disabled: Sequence[str], errors: Sequence[str]
) -> None:
    """Print the warnings that are wanted; raises CompileError for those that are errors."""
    for warning in warnings:
        if {warning.kind, ALL} & {*disabled}:
            continue
        if {warning.kind, ALL} & {*errors}:
            raise warning.as_error()

        click.echo(str(warning), err=True)


def _write(compiled: Program, text: str, outputs: Outputs) -> None:
    if outputs.folder is not None:
        Path(outputs.folder).mkdir(exist_ok=True)

    Path(outputs.json).write_text(json.dumps(compiled.json, indent=2) + "\n", encoding="utf-8")
    for name, suffix in outputs.infos:
        Path(name).write_bytes(message_bytes(compiled.p4info, suffix))

    for name in outputs.entries:
        Path(name).write_bytes(message_bytes(compiled.entries, Path(name).suffix))

    if outputs.text is not None:
        Path(outputs.text).write_text(text, encoding="utf-8")
