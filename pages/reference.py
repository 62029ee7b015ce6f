"""The meaning of every key of an experiment, as a page: types, bounds, defaults and sentences.

`python -m pages.reference PAGE` writes it.
"""

import json
import sys
from pathlib import Path

from fattree.experiment.collective import MATRIX_KEYS
from fattree.texts import schema
from fattree.texts.schema import Node, Row

# The ends of keys' names; the first that fits.
UNITS = {
    "_bytes": "bytes",
    "_gbps": "Gbit/s",
    "_ns": "ns",
    "_us": "µs",
    "_rtt": "zero-load RTTs",
    "_percent": "%",
    "_packets": "packets",
    "_acks": "ACKs",
    "_gaps": "gaps between packets",
}
# Required by the schema, but optional in a file.
READ_FROM_FILE = ("host_rule.text", "agent_packet.text")
HEAD = """# Every key of an experiment

An experiment is a file in [TOML](https://toml.io) (`ofan experiments show demo` prints an example).
Missing keys have their defaults. Unknown keys, values out of range and keys without effect on the
collective are refused with file and line. `--set fabric.k=8` sets any key on the command line.
This page is made from the schema (`make reference`). `ofan experiments schema > experiment.schema.json` writes the schema as JSON Schema, for editors: `#:schema ./experiment.schema.json` as a file's first line.

Sizes (`_bytes`) are numbers, or text with a unit: `"64KiB"`, `"1MiB"`, `"16 MB"`. The networks are
`virtual` and `mininet` (`ofan emulate`) and `sim` (`ofan sim`); a network refuses keys that it does
not support. A line on stderr names settings without effect (options of a load balancer that does
not run, convergence without failures, a failure after the last flow's end). Hosts have numbers from
0 on, edge by edge and pod by pod: with `k = 4`, two hosts at an edge and two edges in a pod, 0 is `h0_0_0`, 1 `h0_0_1`, 2 `h0_1_0`, 4 `h1_0_0`. A sweep is an experiment whose last table, `[sweep]`, lists values of keys (`"fabric.k" = [4, 8]`); every combination runs. \
Keys of `[[jobs]]` contain the job's name: `--set jobs.NAME.start_ns=500`, `"jobs.NAME.collective.message_bytes" = ["64KiB", "1MiB"]`.
"""


def rows() -> list[Row]:
    """Return all keys, those without a table first, in the order of the schema."""
    return sorted(schema.rows(schema.described()), key=lambda row: bool(row.table))


def dotted(row: Row) -> str:
    """Return the dotted key."""
    return f"{row.table}.{row.key}" if row.table else row.key


def meaning(row: Row) -> str:
    """Return the sentence of a key."""
    return str(row.node.get("description", ""))


def networks(row: Row) -> list[str]:
    """Return the networks that support the key; empty if all do."""
    only: list[str] = row.node.get("networks", [])
    return only


def page() -> str:
    """Return the documentation's page."""
    lines = [HEAD]
    for table in dict.fromkeys(row.table for row in rows()):
        lines += [f"## {f'[{table}]' if table else 'The experiment'}\n"]
        lines += ["| key | type | unit | default | networks | |", "|---|---|---|---|---|---|"]
        lines += [_line(row) for row in rows() if row.table == table]
        lines.append("")

    lines += [
        "## Which matrix takes which keys of `[collective]`\n",
        "| matrix | keys |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {', '.join(keys)} |" for name, keys in MATRIX_KEYS.items()]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    default = json.dumps(row.node["default"]) if row.node.get("default") is not None else ""
    cells = (
        f"`{row.key}`",
        _kind(row),
        unit(row.key),
        f"`{default}`" if default else "required" if _is_required(row) else "",
        ", ".join(networks(row)) or "all",
        meaning(row),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _is_required(row: Row) -> bool:
    return "default" not in row.node and dotted(row) not in READ_FROM_FILE


def unit(key: str) -> str:
    """Return the unit that a key's name ends in."""
    return next((text for suffix, text in UNITS.items() if key.endswith(suffix)), "")


def _kind(row: Row) -> str:
    options = [part for part in row.node.get("anyOf", [row.node]) if part.get("type") != "null"]
    return " or ".join(map(_one_kind, options))


def _one_kind(node: Node) -> str:
    if "$ref" in node:
        return "table"
    if "enum" in node:
        return ", ".join(f'`"{value}"`' for value in node["enum"])
    if node["type"] == "array" and "prefixItems" in node:
        return f"list of {len(node['prefixItems'])} {node['prefixItems'][0]['type']}s"
    if node["type"] == "array":
        inner = node.get("items") or {}
        of = _one_kind(inner)
        return f"list of {of.replace('list', 'lists', 1) if of.startswith('list') else of}"

    lower = _bound(node, "minimum", "from {}") or _bound(node, "exclusiveMinimum", "above {}")
    upper = _bound(node, "maximum", "to {}") or _bound(node, "exclusiveMaximum", "below {}")
    multiple = _bound(node, "multipleOf", "a multiple of {}")
    kind = {"string": "text", "boolean": "true or false", "object": "table"}.get(
        node["type"], node["type"]
    )
    return ", ".join(
        part for part in (kind, " ".join(filter(None, (lower, upper))), multiple) if part
    )


def _bound(node: Node, name: str, form: str) -> str:
    if name not in node:
        return ""

    number = node[name]
    return form.format(f"{int(number):,}" if number == int(number) else number)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
