"""The table as a section of a page, between two comments."""

from collections.abc import Mapping
from pathlib import Path

from tests.table.networks import NETWORKS
from tests.table.rows import ROOT

PAGE = ROOT / "docs" / "networks.md"
BEGIN = "<!-- begin: python -m tests.table -->"
END = "<!-- end: python -m tests.table -->"
REFUSED = "refused: "
Rows = Mapping[str, Mapping[str, str]]


def text_of(rows: Rows) -> str:
    """Return the table in Markdown; numbers lead to the reasons of refusals, which follow."""
    reasons: dict[str, int] = {}
    lines = ["| | " + " | ".join(NETWORKS) + " |", "|---" * (len(NETWORKS) + 1) + "|"]
    for name, cells in rows.items():
        shown = [_shown(cells[network], reasons) for network in NETWORKS]
        lines.append("| " + " | ".join([name, *shown]) + " |")

    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join([*lines, "", *notes])


def _shown(cell: str, reasons: dict[str, int]) -> str:
    if not cell.startswith(REFUSED):
        return cell

    reason = _plain(cell.removeprefix(REFUSED))
    return f"refused ({reasons.setdefault(reason, len(reasons) + 1)})"


def _plain(reason: str) -> str:
    # A path of the machine that made the table is no part of it.
    parts = (Path(word).name if word.startswith(str(ROOT)) else word for word in reason.split(" "))
    return " ".join(parts).replace("<", "&lt;").replace("|", "\\|")


def renewed(page: str, text: str) -> str:
    """Return a page with another table."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{text}\n{END}{after}"
