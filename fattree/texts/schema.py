"""The JSON Schema of experiment files: every key's type, bounds, default and meaning, for editors.

They are those of `fattree.experiment`. `ofan experiments schema` prints it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from fattree.experiment.base import Section
from fattree.experiment.model import Experiment
from fattree.experiment.own import LIKE
from fattree.policies import POLICIES, PUBLISHED
from fattree.sentences import sentences

Node = dict[str, Any]
# As `fattree.texts.experiment_file` reads them.
SIZE = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*([kKMGT]i?)?B\s*$"}
# A table with the keys of another table.
REPEATED = "jobs.collective"
BOUNDS = {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}


class Row(NamedTuple):
    """A key: its table (empty: none), its name there, and its part of the schema."""

    table: str
    key: str
    node: Node


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


def rows(whole: Node) -> Iterator[Row]:
    """Yield all keys of a schema, in its order."""
    yield from _rows(whole, whole["$defs"], "")


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
    for row in rows(whole):
        row.node.pop("title", None)
        if row.key.endswith("_bytes"):
            bounds = {key: row.node.pop(key) for key in tuple(row.node) if key in BOUNDS}
            row.node["anyOf"] = [*row.node.pop("anyOf", [bounds]), SIZE]

    names = whole["properties"]["policies"]["items"]
    names["enum"] = [*POLICIES, *PUBLISHED]
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
