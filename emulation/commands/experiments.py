"""`ofan experiments`: list, show and copy the experiments of Ofan."""

import filecmp
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from emulation.command_line import one_line_errors
from emulation.completion import complete_file_of_ours
from fattree.errors import ExperimentError
from fattree.files.text_file import read_text
from fattree.records.tables import width_of_stdout
from fattree.texts.schema import schema
from fattree.texts.shipped import FOLDERS, PAPER, PROGRAMS, SUFFIX, names, ours, title

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = """
\b
Examples:
  ofan experiments list
  ofan experiments show demo
  ofan experiments copy demo            writes ./demo.toml, to edit and run
  ofan experiments copy router.p4 router.stf
  ofan experiments schema > experiment.schema.json
  ofan emulate demo                     a name also works without a copy
"""
WIDTH_OF_PIPES = 160


@click.group(epilog=EXAMPLES, no_args_is_help=True)
def experiments() -> None:
    """List, show and copy the experiments and examples that come with Ofan."""


@experiments.command("list", epilog="\b\nExample:\n  ofan experiments list --paper")
@click.option("--paper", is_flag=True, help="The experiments of the paper's figures.")
@click.option("--names", "only_names", is_flag=True, help="Only the names, one per line.")
def list_command(paper: bool, only_names: bool) -> None:
    """List all experiments and examples, each with its title."""
    chosen = [name for name in names() if name.startswith(PAPER) == paper]
    if only_names:
        click.echo("\n".join(chosen))
        return

    table = Table.grid(padding=(0, 2))
    for name in chosen:
        table.add_row(name, title(name))

    console = Console(width=width_of_stdout(WIDTH_OF_PIPES))
    console.print(table)
    if not paper:
        click.echo("The paper's figures: ofan experiments list --paper")


@experiments.command("show", epilog="\b\nExample:\n  ofan experiments show demo")
@click.argument("name", shell_complete=complete_file_of_ours)
def show(name: str) -> None:
    """Write a file to stdout."""
    with one_line_errors():
        click.echo(read_text(ours(Path(name)), ExperimentError), nl=False)


@experiments.command(
    "copy",
    epilog="\b\nExamples:\n  ofan experiments copy demo\n"
    "  ofan experiments copy p4src   our P4 programs, and what they include",
)
@click.argument(
    "named", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_file_of_ours
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="The folder [the current folder].",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
def copy(named: tuple[str, ...], folder: Path, force: bool) -> None:
    """Copy files into a folder, with the files that they need."""
    with one_line_errors():
        copies = {
            folder / target: source for name in named for target, source in _files(Path(name))
        }
        _refuse_overwriting(copies, force)

    try:
        for copied, source in copies.items():
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)
    except OSError as error:
        raise click.ClickException(f"cannot write {copied}: {error.strerror}") from None

    for copied in copies:
        click.echo(copied)


@experiments.command(
    "schema", epilog="\b\nExample:\n  ofan experiments schema > experiment.schema.json"
)
def schema_command() -> None:
    """Write the JSON Schema of experiments and sweeps, for editors."""
    click.echo(json.dumps(schema(), indent=2))


def _files(name: Path) -> Iterator[tuple[Path, Path]]:
    """Yield (target, file) pairs: all files of a folder, or a file and the files it names."""
    folder = FOLDERS.get(name.name)
    if folder is not None:
        kinds = ("*.p4", "include/*.p4") if folder == PROGRAMS else ("*.*", "paper/*.*")
        for source in (path for kind in kinds for path in sorted(folder.glob(kind))):
            yield Path(name.name) / source.relative_to(folder), source

        return

    source = ours(name)
    yield Path(source.name), source

    # Any key may name a file: a matrix, a workload, a topology, a program, a rule.
    if source.suffix == SUFFIX:
        for text in _texts(tomllib.loads(read_text(source, ExperimentError))):
            if (source.parent / text).is_file():
                yield Path(text), source.parent / text


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in TOML values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _refuse_overwriting(copies: Mapping[Path, Path], force: bool) -> None:
    # A dangling link counts as existing: copying would write the file that it names.
    changed = (copied for copied, source in copies.items() if not _is_copy(copied, source))
    existing = next((path for path in changed if path.exists() or path.is_symlink()), None)
    if existing is not None and not force:
        raise ExperimentError(f"{existing} exists already: --force replaces it")


def _is_copy(copied: Path, source: Path) -> bool:
    """Return whether a file already is the copy: a command may run twice."""
    return (
        copied.is_file() and not copied.is_symlink() and filecmp.cmp(copied, source, shallow=False)
    )
