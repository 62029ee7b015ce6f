"""`ofan-p4 install-names`: our compiler and switch under the names that other projects call."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from ofan_p4.softswitch.daemon.options import NAMES_OF_BMV2

# On BMv2's port by default: scripts start a switch and talk to it.
SWITCH = ("ofan_p4.softswitch.daemon.process", "--thrift-port", "9090", "--in-place-of")
# The module of ours that each name runs, and its first arguments.
NAMES: dict[str, tuple[str, ...]] = {
    "p4c-bm2-ss": ("ofan_p4.cli", "compile"),
    "p4c": ("ofan_p4.cli", "compile", "--driver"),
    **{name: (*SWITCH, name) for name in NAMES_OF_BMV2},
    "simple_switch_CLI": ("ofan_p4.runtime_cli.cli",),
}


@click.command("install-names")
@click.argument("folder", type=click.Path(file_okay=False))
def install_names(folder: str) -> None:
    """Make FOLDER with p4c, p4c-bm2-ss, simple_switch, simple_switch_grpc and simple_switch_CLI.

    FOLDER is for the PATH. Other files of these names are not overwritten.
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
    # Isolated: neither the current folder nor a variable of the caller's has modules for it.
    command = shlex.join([sys.executable, "-I", "-m", *NAMES[name]])
    return f'#!/bin/sh\n# Ofan\nexec {command} "$@"\n'


def _install(path: Path, text: str) -> None:
    # Only this command's own files are overwritten.
    if path.exists() and "\n# Ofan\n" not in path.read_text(encoding="utf-8", errors="replace"):
        raise click.ClickException(f"{path} exists and is not ours")

    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
