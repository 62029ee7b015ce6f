"""Mistakes in keys of an experiment file: the line, and the key that was meant."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fattree.errors import ExperimentError, nearest
from fattree.experiment.collective import MATRIX_KEYS
from fattree.experiment.mistakes import WITHOUT_EFFECT, brief, expectation, known_keys
from fattree.experiment.model import Collective, Experiment, Settings
from fattree.files.text_file import read_text
from fattree.texts.job_keys import JOBS, by_name
from fattree.texts.toml_places import KeyPath, lines_of

# The key, with its table, that a message begins with.
FULL_KEY = re.compile(r"[a-z_]+(?:\.[a-z_]+)+|[a-z_]+(?=:| =)")

# Other tools' words for keys of another table here.
SIZES = dict.fromkeys(("gpus", "hosts", "nodes", "servers", "size"), "fabric.k makes k*k*k/4 hosts")


@dataclass(frozen=True, slots=True)
class Where:
    """Where keys come from: a file's text, or an override, which calls jobs by their names."""

    text: str
    source: str
    overridden: Sequence[KeyPath]
    jobs: Sequence[Any] = ()

    def of(self, path: KeyPath) -> str:
        """Return `file:line` of a key, or the override that set it."""
        said = by_name(path, self.jobs)
        for override in self.overridden:
            if said[: len(override)] == override:
                return f"--set {'.'.join(override)}"

        if line := self._line_of(path):
            return f"{self.source}:{line}"

        # A table that nothing but the override has.
        for override in self.overridden:
            if override[: len(said)] == said:
                return f"--set {'.'.join(override)}"

        return self.source

    def of_message(self, message: str) -> str:
        """Return a message behind the place of the key that it begins with, if this has the key."""
        match = FULL_KEY.match(message)
        path = tuple(match[0].split(".")) if match else ()
        places = lines_of(self.text) if path else {}
        while path and path not in places and path not in self.overridden:
            path = path[:-1]

        # An override's name would be there twice.
        position = self.of(path) if path else ""
        return (
            f"{position}: {message}" if position and not position.startswith("--set") else message
        )

    def _line_of(self, path: KeyPath) -> int:
        """Return the line on which a key stands, or else the deepest table around it, or 0."""
        places = lines_of(self.text)
        prefixes = (path[:length] for length in range(len(path), 0, -1))
        return next((places[prefix] for prefix in prefixes if prefix in places), 0)


def located(message: str, file: Path, overrides: Iterable[str]) -> str:
    """Return a network's error about an experiment, with the line of the key that it begins with.

    A message without a key stays as it is.
    """
    # A mistake in the text itself has its line.
    if message.startswith(str(file)) or not FULL_KEY.match(message):
        return message

    set_by_hand = [tuple(override.partition("=")[0].strip().split(".")) for override in overrides]
    text = read_text(file, ExperimentError)
    return Where(text, str(file), set_by_hand).of_message(message)


def explain(error: ValidationError, place: Where, values: Mapping[str, Any]) -> str:
    """Return one line of the first mistake, and its place."""
    # A key that does not exist first: the missing key is probably the key that was meant.
    problem = min(
        error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden"
    )
    path = problem["loc"]
    kind = problem["type"]
    where = place.of(path)
    name = ".".join(map(str, by_name(path, place.jobs)))

    if path == ("sweep",) and ("sweep",) not in place.overridden:
        return f"{where}: a sweep: ofan sim sweep {place.source} runs it"
    if kind == "extra_forbidden":
        return f"{where}: unknown key {name}{likely(path, values)}"
    if kind == WITHOUT_EFFECT:
        return f"{place.of((*path, *problem['ctx']['path']))}: {problem['msg']}"
    if kind == "missing":
        return f"{where}: {_missing(path, name)}"

    expected = expectation(problem)

    # A mistake of the whole belongs to no value.
    if not path:
        return f"{where}: {expected}"

    return f"{where}: {name} = {brief(problem['input'])}: {expected}"


def _missing(path: KeyPath, name: str) -> str:
    # Jobs are called by their names, one without a name by its place.
    if path[:1] == (JOBS,) and path[2:] == ("name",):
        return f"job {path[1] + 1} has no name"

    return f"{name} is missing"


def likely(path: KeyPath, values: Mapping[str, Any]) -> str:
    """Return a hint at the known key, here or elsewhere, that an unknown key may stand for.

    `values` are those of the whole file: a collective's own keys depend on its matrix.
    """
    word = str(path[-1])
    if path[:-1] in (("fabric",), ("collective",)) and word in SIZES:
        return f" ({SIZES[word]})"
    if len(path) < 3 and (home := _home(word)):
        return f" ({home})"
    if path[:-1] != ("collective",):
        return nearest(word, known_keys(Experiment, path[:-1]))

    collective = values.get("collective")
    matrix = collective.get("matrix", "permutation") if isinstance(collective, Mapping) else None
    keys = next((keys for name, keys in MATRIX_KEYS.items() if name == matrix), None)
    if keys is None:
        return nearest(word, Collective.model_fields)

    return nearest(word, ["matrix", *keys]) or f" (matrix {matrix} takes {', '.join(keys)})"


def _home(word: str) -> str:
    """Return where a key belongs that has this very name, nothing if there is none."""
    if word in Experiment.model_fields:
        return "it belongs at the top of the file, above all tables"

    table = next(
        (
            section
            for section in Settings.model_fields
            if word in known_keys(Experiment, (section,))
        ),
        None,
    )
    return f"it belongs in the table [{table}]" if table else ""
