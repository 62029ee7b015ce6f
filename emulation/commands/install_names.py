"""`ofan p4 install-names`: our compiler and switch under the names that other projects call."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from hostagent.isolation import python_command

# Both are on BMv2's port unless told otherwise: scripts start a switch and talk to it.
SWITCH = ("emulation.softswitch.process", "--thrift-port", "9090")
# What each name runs: a module of ours, and its first arguments.
NAMES: dict[str, tuple[str, ...]] = {
    "p4c-bm2-ss": ("ofan", "p4", "compile"),
    "p4c": ("ofan", "p4", "compile", "--driver"),
    "simple_switch_grpc": SWITCH,
    "simple_switch": SWITCH,
    "simple_switch_CLI": ("emulation.runtime_cli.cli",),
}


@click.command("install-names")
@click.argument("folder", type=click.Path(file_okay=False))
def install_names(folder: str) -> None:
    """Make FOLDER with p4c, p4c-bm2-ss, simple_switch, simple_switch_grpc and simple_switch_CLI.

    To put on the PATH. What else is called so is not overwritten.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            _install(Path(folder) / name, script(name))
    except OSError as error:
        raise click.ClickException(f"cannot write {error.filename}: {error.strerror}") from None

    click.echo(f"{folder}: {', '.join(NAMES)}")


def script(name: str) -> str:
    """Return the program of a name."""
    module, *arguments = NAMES[name]
    command = shlex.join(python_command(module, *arguments))
    return f'#!/bin/sh\n# Ofan\nexec {command} "$@"\n'


def _install(path: Path, text: str) -> None:
    # Only what this command has made itself.
    if path.exists() and "\n# Ofan\n" not in path.read_text(encoding="utf-8", errors="replace"):
        raise click.ClickException(f"{path} exists and is not ours")

    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
