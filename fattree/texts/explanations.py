"""What is wrong with a key of an experiment file, in which line, and which key was meant."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fattree.experiment.base import WITHOUT_EFFECT
from fattree.experiment.collective import MATRIX_KEYS
from fattree.experiment.model import Collective, Experiment, Settings

EXPECTED = {
    "model_type": "must be a table",
    "tuple_type": "must be a list",
    "int_parsing": "must be a whole number, as in 8",
    "int_type": "must be a whole number, as in 8",
    "int_from_float": "must be a whole number, as in 8",
    "float_parsing": "must be a number, as in 0.5",
    "float_type": "must be a number, as in 0.5",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    # Only names have one: of experiments and jobs.
    "string_pattern_mismatch": "must be of letters, digits and _ . -, and begin without . and -",
}
KeyPath = tuple[Any, ...]
# A table's line; a row of an array of arrays (`[0, 1],`) is none.
HEADER = re.compile(r"\s*(\[\[?)\s*([\w.\-\"' ]+?)\s*\]\]?\s*(?:#.*)?$")

# Words that other tools have for what is a key of another table here.
ELSEWHERE = dict.fromkeys(("gpus", "nodes", "servers", "size"), "fabric.k makes k*k*k/4 hosts")


@dataclass(frozen=True, slots=True)
class Where:
    """Where keys come from: a file's text, or an override."""

    text: str
    source: str
    overridden: Sequence[KeyPath]

    def of(self, path: KeyPath) -> str:
        """Return `file:line` of a key, or the override that set it."""
        for override in self.overridden:
            if tuple(path[: len(override)]) == override:
                return f"--set {'.'.join(override)}"

        if line := _line_of(path, self.text):
            return f"{self.source}:{line}"

        # A table that nothing but the override has.
        for override in self.overridden:
            if override[: len(path)] == tuple(path):
                return f"--set {'.'.join(override)}"

        return self.source


def explain(error: ValidationError, place: Where, values: Mapping[str, Any]) -> str:
    """Return one line of the first thing that is wrong, and where."""
    # A key that does not exist first: the one that is missing is what it should have been.
    problem = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    path = problem["loc"]
    kind = problem["type"]
    where = place.of(path)
    name = ".".join(map(str, path))

    if path == ("sweep",) and ("sweep",) not in place.overridden:
        return f"{where}: a sweep: ofan sim sweep {place.source} runs it"
    if kind == "extra_forbidden":
        return f"{where}: unknown key {name}{likely(path, values)}"
    if kind == WITHOUT_EFFECT:
        return f"{place.of((*path, problem['ctx']['key']))}: {problem['msg']}"
    if kind == "missing":
        return f"{where}: {name} is missing"

    expected = EXPECTED.get(kind) or problem["msg"].removeprefix("Value error, ").replace(
        "Input should be", "must be"
    )
    if kind.startswith("int_") and name.endswith("_bytes"):
        expected = 'must be bytes, or text with a unit, as in 65536 or "64KiB"'

    if kind == "literal_error":
        expected += nearest(str(problem["input"]), re.findall("'([^']+)'", expected))

    # What is wrong with all of it is wrong with no value.
    if not path:
        return f"{where}: {expected}"

    return f"{where}: {name} = {_brief(problem['input'])}: {expected}"


def likely(path: KeyPath, values: Mapping[str, Any]) -> str:
    """Return a hint at the known key, here or elsewhere, that an unknown key may stand for.

    `values` are those of the whole file: a collective's own keys depend on its matrix.
    """
    for table in Settings.model_fields if len(path) == 1 else ():
        if path[0] in _known_keys((table,)):
            return f" (it belongs in the table [{table}])"

    word = str(path[-1])
    if path[:-1] != ("collective",):
        return nearest(word, _known_keys(path[:-1]))
    if word in ELSEWHERE:
        return f" ({ELSEWHERE[word]})"

    collective = values.get("collective")
    matrix = collective.get("matrix", "permutation") if isinstance(collective, Mapping) else None
    keys = next((keys for name, keys in MATRIX_KEYS.items() if name == matrix), None)
    if keys is None:
        return nearest(word, Collective.model_fields)

    return nearest(word, ["matrix", *keys]) or f" (matrix {matrix} takes {', '.join(keys)})"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _known_keys(path: KeyPath) -> list[str]:
    model: type[BaseModel] = Experiment
    for part in path:
        # A number is a place in a list, whose elements are of one kind.
        if isinstance(part, int):
            continue

        field = model.model_fields.get(part)
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            return []

        model = inner

    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the table that a field holds, or of which it holds a list or perhaps nothing."""
    return next(
        (
            one
            for one in (annotation, *get_args(annotation))
            if isinstance(one, type) and issubclass(one, BaseModel)
        ),
        None,
    )


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that was probably meant, as a question in brackets, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _line_of(keys: KeyPath, text: str) -> int:
    """Return the line (from 1) on which a key stands, or its nearest table, or 0."""
    # tomllib keeps no positions. This reads lines as a person would: the deepest key that is a
    # beginning of the one sought wins, so a missing key is reported at its table.
    table: list[str | int] = []
    elements: Counter[tuple[str, ...]] = Counter()
    best = 0
    depth = 0

    for number, line in enumerate(text.split("\n"), start=1):
        header = HEADER.match(line)
        key = re.match(r"\s*([A-Za-z0-9_.\-\"']+)\s*=", line)
        if header:
            parts = _parts(header[2])
            elements[tuple(parts)] += header[1] == "[["
            table = _numbered(parts, elements)

        here = table if header else [*table, *_parts(key[1])] if key else []
        shared = len(here) if here and list(keys[: len(here)]) == here else 0
        if shared > depth:
            best = number
            depth = shared

    return best


def _numbered(parts: Sequence[str], elements: Mapping[tuple[str, ...], int]) -> list[str | int]:
    """Return the path of a table, behind each array of tables the number of its present element."""
    path: list[str | int] = []
    for number, part in enumerate(parts, start=1):
        path.append(part)
        if count := elements.get(tuple(parts[:number])):
            path.append(count - 1)

    return path


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
