"""Which load balancer to run on four fabrics: README's table, and the picture of its page.

    python -m benchmarks.tables answers          (some ten CPU minutes)
    python -m benchmarks.pictures docs/choose.png

Both are made by `ofan choose`, and share its runs (build/choose).
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

from ofan import cli

FOLDER = Path("build") / "choose"
# The order depends on no clock: as many looks as there are, and time for them.
SETTINGS = ("--looks", "2", "--minutes", "600", "--json")
COLUMNS = ("fabric of 128 GPUs", "run", "at worst", "next", "if all links are up", "`ofan choose`")
FABRICS: Mapping[str, str] = {
    "fat-tree of three tiers": "--hosts 128 --tiers 3",
    "leaf-spine, 4:1": "--hosts 128 --oversubscription 4",
    "eight rails": "--hosts 128 --rails 8",
    "leaf-spine, 4:1, RoCE with PFC, NICs in order": (
        "--hosts 128 --oversubscription 4 --lossless --nics in-order"
    ),
}
# The fabric of the picture.
SHOWN = "leaf-spine, 4:1"


def folder(fabric: str) -> Path:
    """Return where the runs of a fabric are kept."""
    return FOLDER / "-".join(FABRICS[fabric].replace("--", "").split())


def answer(fabric: str) -> dict[str, Any]:
    """Return the answer of `ofan choose` for a fabric."""
    arguments = ["choose", *FABRICS[fabric].split(), *SETTINGS, "--output", str(folder(fabric))]
    done = CliRunner().invoke(cli, arguments)
    if done.exit_code:
        raise click.ClickException(done.output)

    choice: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return choice


def row(fabric: str) -> Sequence[str]:
    """Return the row of a fabric."""
    choice = answer(fabric)
    by_name = {entry["name"]: entry for entry in choice["rows"]}
    first = choice["first"]
    best = by_name[first[0]]
    behind = [entry for entry in choice["rows"] if entry["name"] not in first]
    up = min(choice["rows"], key=lambda entry: float(entry["percent"]["up"]["mean"]))
    tied = _listed([by_name[name] for name in first[1:]])
    level = f", not told apart from {tied}" if tied else ""
    return (
        fabric,
        f"**{best['label']}**{level}",
        f"{best['worst_percent']:.1f} % ({_words(choice, best['worst_condition'])})",
        f"{behind[0]['label']}, {behind[0]['worst_percent']:.1f} %" if behind else "",
        f"{up['label']}, {up['percent']['up']['mean']:.1f} %",
        f"`{FABRICS[fabric]}`",
    )


def _listed(rows: Sequence[Mapping[str, Any]], limit: int = 3) -> str:
    names = ", ".join(balancer["label"] for balancer in rows[:limit])
    return names + (f" and {len(rows) - limit} more" if len(rows) > limit else "")


def _words(chosen: Mapping[str, Any], condition: str) -> str:
    return " ".join(chosen["conditions"][condition]["heading"].split())


ROWS = {fabric: partial(row, fabric) for fabric in FABRICS}
