"""The meaning of every key of an experiment: a JSON Schema for editors, and a page of docs/.

Types, bounds, defaults and sentences are those of `fattree.experiment`.
`python -m fattree.texts.reference PAGE` writes the page; `ofan experiments schema` the schema.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fattree.experiment.base import Section
from fattree.experiment.collective import MATRIX_KEYS
from fattree.experiment.model import Experiment
from fattree.experiment.own import LIKE
from fattree.policies import POLICIES
from fattree.sentences import sentences

Node = dict[str, Any]
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
# As `fattree.texts.experiment_file` reads them.
SIZE = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*([kKMGT]i?)?B\s*$"}
# A table whose keys are those of another one.
REPEATED = "jobs.collective"
# Required by the schema, but optional in a file.
READ_FROM_FILE = ("host_rule.text", "agent_packet.text")
BOUNDS = {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
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


class Row(NamedTuple):
    """A key: its table (empty: none), its name there, and its part of the schema."""

    table: str
    key: str
    node: Node

    @property
    def path(self) -> str:
        """Return the dotted key."""
        return f"{self.table}.{self.key}" if self.table else self.key

    @property
    def meaning(self) -> str:
        """Return its sentence."""
        return str(self.node.get("description", ""))

    @property
    def networks(self) -> list[str]:
        """Return the networks that support the key; empty if all do."""
        only: list[str] = self.node.get("networks", [])
        return only


def described() -> Node:
    """Return the schema of experiments, each key with the sentence that stands below it."""
    whole = Experiment.model_json_schema()
    nodes = {Experiment.__name__: whole, **whole["$defs"]}
    for table in _below(Section):
        keys = nodes.get(table.__name__, {}).get("properties", {})
        for key, sentence in sentences(table).items() if keys else ():
            if key in keys:
                keys[key]["description"] = sentence

    return whole


def _below(table: type[Section]) -> Iterator[type[Section]]:
    yield table
    for inner in table.__subclasses__():
        yield from _below(inner)


def rows() -> list[Row]:
    """Return all keys, those without a table first, in the order of the schema."""
    whole = described()
    return sorted(_rows(whole, whole["$defs"], ""), key=lambda row: bool(row.table))


def _rows(model: Node, definitions: Node, table: str) -> Iterator[Row]:
    for key, node in model["properties"].items():
        inner = _definition(node, definitions)
        path = f"{table}.{key}" if table else key
        if inner is None or path == REPEATED:
            yield Row(table, key, node)
        else:
            yield from _rows(inner, definitions, path)


def _definition(node: Node, definitions: Node) -> Node | None:
    """Return the table that a key is, or of which it is a list or perhaps nothing."""
    for part in (node, node.get("items", {}), *node.get("anyOf", ())):
        if "$ref" in part:
            definition: Node = definitions[part["$ref"].rpartition("/")[2]]
            return definition

    return None


def schema() -> Node:
    """Return the JSON Schema of experiment and sweep files."""
    whole = described()
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    whole["title"] = "An experiment of Ofan"
    for row in _rows(whole, whole["$defs"], ""):
        row.node.pop("title", None)
        if row.key.endswith("_bytes"):
            bounds = {key: row.node.pop(key) for key in tuple(row.node) if key in BOUNDS}
            row.node["anyOf"] = [*row.node.pop("anyOf", [bounds]), SIZE]

    names = whole["properties"]["policies"]["items"]
    names["enum"] = list(POLICIES)
    for table in ("OwnProgram", "OwnHostRule"):
        whole["$defs"][table]["properties"]["like"]["enum"] = list(LIKE)

    # Without the text, a rule or packets are read from their file.
    for table in ("OwnHostRule", "AgentPacket"):
        whole["$defs"][table]["required"] = ["file"]

    whole["properties"]["sweep"] = {
        "type": "object",
        "description": "The last table: lists of values of keys; every combination runs.",
        "additionalProperties": {"anyOf": [{"type": "array", "minItems": 1}, {"type": "object"}]},
    }
    return whole


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
        ", ".join(row.networks) or "all",
        row.meaning,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _is_required(row: Row) -> bool:
    return "default" not in row.node and row.path not in READ_FROM_FILE


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

    least = _bound(node, "minimum", "from {}") or _bound(node, "exclusiveMinimum", "above {}")
    most = _bound(node, "maximum", "to {}") or _bound(node, "exclusiveMaximum", "below {}")
    multiple = _bound(node, "multipleOf", "a multiple of {}")
    kind = {"string": "text", "boolean": "true or false", "object": "table"}.get(
        node["type"], node["type"]
    )
    return ", ".join(
        part for part in (kind, " ".join(filter(None, (least, most))), multiple) if part
    )


def _bound(node: Node, name: str, form: str) -> str:
    if name not in node:
        return ""

    number = node[name]
    return form.format(f"{int(number):,}" if number == int(number) else number)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
