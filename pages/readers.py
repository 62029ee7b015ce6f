"""Fields that each reader of other people's files uses, leaves out and refuses, as page tables.

`python -m pages.readers PAGE` writes them into docs/workloads.md, between two marks.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fattree.files.connection_matrix import TABLE as MATRIX
from fattree.files.fields import Fields
from fattree.files.topo_file import TABLE as TOPOLOGY
from fattree.generators.chakra_fields import ATTRIBUTES, NODE_FIELDS
from fattree.generators.goal_schedule import TABLE as GOAL
from fattree.generators.model_config import TABLE as MODEL

BEGIN = "<!-- begin: pages/readers.py -->"
END = "<!-- end: pages/readers.py -->"
TABLES: dict[str, Sequence[Fields]] = {
    "GOAL (the text's words; the binary form has the same)": GOAL,
    "Chakra, a node": NODE_FIELDS,
    "Chakra, a node's attributes": ATTRIBUTES,
    "htsim `.cm`": MATRIX,
    "htsim `.topo` (in any case)": TOPOLOGY,
    "model configuration (`config.json`)": MODEL,
}


def text() -> str:
    """Return the tables, one below the other."""
    return "\n".join(line for name, table in TABLES.items() for line in _lines(name, table))


def _lines(name: str, table: Sequence[Fields]) -> Iterator[str]:
    yield from ("", f"| {name} | | why |", "|---|---|---|")
    for row in table:
        fields = ", ".join(name if " " in name else f"`{name}`" for name in row.names)
        yield f"| {fields} | {row.use.value} | {row.why} |"


def written(page: str) -> str:
    """Return a page with the tables as they are now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{text()}\n\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str]) -> None:
    """Write the tables into the page that is named."""
    (name,) = arguments
    page = Path(name)
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
