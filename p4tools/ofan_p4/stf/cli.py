"""`ofan-p4 stf`: run an STF test, or a folder of tests."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from ofan_p4.finite import Finite
from ofan_p4.stf.cases import Verdict, find_cases
from ofan_p4.stf.worker import run_cases

PASSED = 0
FAILED = 1
REFUSED = 2
STATUSES = ("passed", "failed", "unsupported")

EXAMPLES = """
\b
Examples:
  ofan-p4 stf router.p4 router.stf   one test
  ofan-p4 stf router.p4              the same: router.stf lies beside it
  ofan-p4 stf .                      all pairs NAME.p4, NAME.stf below
  ofan-p4 stf . --match v1model.p4 --json | jq .failed
\b
Exit codes: 0 all passed, 1 some failed, 2 none failed but some are
unsupported (or the command line is wrong).
"""


@click.command("stf", epilog=EXAMPLES)
@click.argument("program", type=click.Path(exists=True, path_type=Path))
@click.argument(
    "script", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False
)
@click.option(
    "-I", "include_dirs", multiple=True, metavar="DIR", help="Search DIR for included files."
)
@click.option(
    "--match", metavar="TEXT", default="", help="Of a folder, only programs that contain TEXT."
)
@click.option(
    "--timeout",
    type=Finite(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds for one test.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all verdicts as JSON.")
def stf_command(
    program: Path,
    script: Path | None,
    include_dirs: tuple[str, ...],
    match: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Run the STF test SCRIPT on PROGRAM, or every test below a folder, on our compiler and our
    switch.
    """
    cases = _cases(program, script, match)
    with _progress(len(cases)) as progress:
        verdicts = list(_watched(run_cases(cases, timeout, include_dirs), progress, quiet=as_json))

    counts = Counter(verdict.status for verdict in verdicts)
    if as_json:
        click.echo(
            json.dumps(
                {**{s: counts[s] for s in STATUSES}, "cases": [asdict(v) for v in verdicts]},
                indent=2,
            )
        )
    elif len(cases) > 1 or program.is_dir():
        click.echo(", ".join(f"{counts[status]} {status}" for status in STATUSES))

    # Failures weigh more than unsupported tests.
    raise SystemExit(FAILED if counts["failed"] else REFUSED if counts["unsupported"] else PASSED)


def _cases(program: Path, script: Path | None, match: str) -> list[tuple[Path, Path]]:
    if program.is_dir():
        if script is not None:
            raise click.UsageError(f"{program} is a folder: its scripts lie beside its programs")

        cases = [
            case
            for case in find_cases(program)
            if match in case[0].read_text(encoding="utf-8", errors="replace")
        ]

        if not cases:
            raise click.UsageError(
                f"{program} has no pair NAME.p4, NAME.stf" + (f" with {match!r}" if match else "")
            )

        return cases

    script = script or program.with_suffix(".stf")
    if not script.is_file():
        raise click.UsageError(f"there is no {script}: name the script")

    return [(program, script)]


def _progress(total: int) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )

    console = Console(file=sys.stderr)
    progress = Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal or total < 2
    )
    progress.add_task("tests", total=total)

    return progress


def _watched(verdicts: Iterable[Verdict], progress: Progress, quiet: bool) -> Iterator[Verdict]:
    """Pass verdicts on; print those that did not pass at once."""
    single: Sequence[str] = STATUSES if progress.tasks[0].total == 1 else STATUSES[1:]
    for verdict in verdicts:
        if not quiet and verdict.status in single:
            detail = f": {verdict.detail}" if verdict.detail else ""
            progress.console.file.flush()
            click.echo(f"{verdict.status.upper()} {verdict.script}{detail}")

        progress.advance(progress.tasks[0].id)
        yield verdict
