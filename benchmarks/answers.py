"""Which load balancer to run on four fabrics: README's table, and the picture of its page.

    python -m benchmarks.tables answers          (some ten CPU minutes)
    python -m benchmarks.tables cases            (some ten more)
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
# Where routes learn of failures and slow links at once.
KNOWN = "--without slow-unknown --without failing --without reboot"
CASE_COLUMNS = ("first", "where", "at worst", "next", "with other seeds", "`ofan choose`")
CASES: Mapping[str, tuple[str, str]] = {
    "Ofan": (
        "a fat-tree whose routes know each failed and slow link",
        f"--hosts 128 --tiers 3 {KNOWN}",
    ),
    "Host DR": (
        "the same, whose switches stay as they are",
        f"--hosts 128 --tiers 3 {KNOWN} --change hosts",
    ),
    "Switch Pkt AR": (
        "a fat-tree with a slow link that no route knows, whose hosts stay as they are",
        "--hosts 128 --tiers 3 --without failing --without reboot --change switches",
    ),
    "Flow": (
        "a 4:1 leaf-spine, PFC, NICs that take packets in order",
        FABRICS["leaf-spine, 4:1, RoCE with PFC, NICs in order"],
    ),
}
# Of the second answer to the same question.
OTHER_SEED = 1_001
# The fabric of the picture.
SHOWN = "leaf-spine, 4:1"


def folder(options: str) -> Path:
    """Return where the runs of a question are kept."""
    return FOLDER / "-".join(options.replace("--", "").split())


def answer(options: str) -> dict[str, Any]:
    """Return the answer of `ofan choose` to a question."""
    arguments = ["choose", *options.split(), *SETTINGS, "--output", str(folder(options))]
    done = CliRunner().invoke(cli, arguments)
    if done.exit_code:
        raise click.ClickException(done.output)

    choice: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return choice


def row(fabric: str) -> Sequence[str]:
    """Return the row of a fabric."""
    choice = answer(FABRICS[fabric])
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


def case(name: str) -> Sequence[str]:
    """Return the row of a case: a load balancer that is first, twice."""
    where, options = CASES[name]
    choice, again = answer(options), answer(f"{options} --seed {OTHER_SEED}")
    firsts = [_first(choice), _first(again)]
    best = choice["rows"][0]
    behind = [row for row in choice["rows"] if row["name"] not in choice["first"]]
    return (
        firsts[0],
        where,
        f"{best['worst_percent']:.1f} % ({_words(choice, best['worst_condition'])})",
        ", ".join(f"{row['label']} {row['worst_percent']:.1f} %" for row in behind[:2]),
        "the same first three" if _three(choice) == _three(again) else firsts[1],
        f"`{options}`",
    )


def _three(choice: Mapping[str, Any]) -> list[str]:
    return [row["name"] for row in choice["rows"][:3]]


def _first(choice: Mapping[str, Any]) -> str:
    """Return the label of the first, and of those that may be as good."""
    by_name = {row["name"]: row["label"] for row in choice["rows"]}
    first = [by_name[name] for name in choice["first"]]
    return f"**{first[0]}**" + (
        f", not told apart from {', '.join(first[1:])}" if first[1:] else ""
    )


def _listed(rows: Sequence[Mapping[str, Any]], limit: int = 3) -> str:
    names = ", ".join(balancer["label"] for balancer in rows[:limit])
    return names + (f" and {len(rows) - limit} more" if len(rows) > limit else "")


def _words(chosen: Mapping[str, Any], condition: str) -> str:
    return " ".join(chosen["conditions"][condition]["heading"].split())


ROWS = {fabric: partial(row, fabric) for fabric in FABRICS}
CASE_ROWS = {name: partial(case, name) for name in CASES}
