"""The cost of faults on Mininet (root) and in virtual time: packets lost, time to recover.

    sudo .venv/bin/python benchmarks/faults.py --runs 10 --update docs/faults.md
    sudo .venv/bin/python benchmarks/faults.py --runs 1 --only probe

`detect`, `plan` and `install` are the stages of a convergence: from the fault until the controller
knows, until it has its plan, and until the last switch has acknowledged. `recover` is all of it.
`lost` are packets sent and never received.
"""

import json
import os
import platform
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import click

from benchmarks.fault_cases.cases import CASES, Case, samples
from benchmarks.fault_cases.measuring import Sample, agent_dies
from benchmarks.fault_cases.storms import STORMS, storms

COLUMNS = (
    "fault",
    "how injected",
    "detection",
    "packets lost",
    "time to recover (ms)",
    "detect / plan / install (ms)",
)
BEGIN = "<!-- begin: benchmarks/faults.py -->"
END = "<!-- end: benchmarks/faults.py -->"


def row(fault: str, injected: str, mode: str, samples: list[Sample]) -> dict[str, object]:
    """Return the medians of a case, with the range of the time to recover."""
    columns = {name: [getattr(sample, name) for sample in samples] for name in Sample._fields}
    medians = {
        name: median(values) if None not in values else None for name, values in columns.items()
    }
    extent = {"least": min(columns["recover"]), "most": max(columns["recover"])}

    return {
        "fault": fault,
        "injected": injected,
        "mode": mode,
        "runs": len(samples),
        **medians,
        **extent,
    }


def markdown(rows: list[dict[str, object]]) -> str:
    """Return the table."""
    head = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"
    return head + "".join(_line(values) for values in rows)


def _line(values: dict[str, object]) -> str:
    split = [values[name] for name in ("detect", "plan", "install")]
    shown = "" if None in split else " / ".join(f"{part:.0f}" for part in split)
    recover = f"{values['recover']:.0f} ({values['least']:.0f} to {values['most']:.0f})"

    case = f"{values['fault']} | {values['injected']} | {values['mode']}"
    return f"| {case} | {values['lost']:.0f} | {recover} | {shown} |\n"


def update(page: Path, table: str) -> None:
    """Replace the table of a page."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table}{END}{rest.partition(END)[2]}")


def measurements(
    runs: int, with_virtual: bool
) -> Iterator[tuple[str, str, str, Callable[[], list[Sample]]]]:
    """Yield the fault, its injection, the detection mode, and the function that measures it."""
    for case in CASES:
        yield case.fault, case.injected, case.mode, partial(samples, case, runs)

    for fault, injected, controller in STORMS if with_virtual else ():
        mode = Case(fault, injected, controller, agent_dies).mode
        yield fault, injected, mode, partial(storms, controller, runs)


@click.command()
@click.option(
    "--runs", default=10, show_default=True, help="Runs of each case; the table shows medians."
)
@click.option("--only", default="", help="Only cases whose fault or mode contains this.")
@click.option(
    "--virtual/--no-virtual", "with_virtual", default=True, help="The cases in virtual time, too."
)
@click.option(
    "--update",
    "page",
    type=click.Path(path_type=Path, exists=True),
    help="Write the table into this page.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="JSON lines of what is measured; what is there is not measured again.",
)
def main(
    runs: int, only: str, with_virtual: bool, page: Path | None, as_json: bool, keep: Path | None
) -> None:
    """Measure all faults."""
    rows = []
    kept_rows = {
        (done["fault"], done["mode"]): done
        for done in map(json.loads, keep.read_text().splitlines() if keep and keep.exists() else ())
    }

    for fault, injected, mode, measured in measurements(runs, with_virtual):
        if only not in f"{fault} {mode}":
            continue

        rows.append(kept_rows.get((fault, mode)) or row(fault, injected, mode, measured()))
        click.echo(_line(rows[-1]), err=True, nl=False)
        if keep and (fault, mode) not in kept_rows:
            with keep.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")

    click.echo(json.dumps(rows, indent=2) if as_json else markdown(rows))
    click.echo(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[1]:.1f}", err=True
    )
    if page:
        update(page, markdown(rows))


if __name__ == "__main__":
    main()
