"""Read and write experiment files: TOML in, `Experiment` out, and one line for whatever is wrong, with the line it is on.

Sizes (keys that end in `_bytes`) may be written as text: "1MiB", "64KiB", "16 MB". `convergence_rtt = inf` is plain TOML.
"""

import difflib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fabric.errors import ExperimentError
from fabric.experiment import Experiment
from fabric.policies import POLICIES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B")
PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
KeyPath = tuple[Any, ...]


def load_experiment(path: str | Path, overrides: Iterable[str] = ()) -> Experiment:
    """Read an experiment file and apply overrides such as `fabric.k=8` or `policies=ofan,jsq`; raises ExperimentError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    return parse_experiment(text, str(path), overrides)


def parse_experiment(text: str, source: str, overrides: Iterable[str] = ()) -> Experiment:
    """Read an experiment from TOML text; `source` names it in errors."""
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ExperimentError(f"{source}: not TOML: {error or 'nested too deeply'}") from None
    overridden = [_override(values, override) for override in overrides]
    try:
        experiment = Experiment.model_validate(_sizes(values))
    except ValidationError as error:
        raise ExperimentError(_explain(error, text, source, overridden)) from None
    _refuse_unknown_policies(experiment, text, source, overridden)
    return experiment


def _override(values: dict[str, Any], override: str) -> KeyPath:
    """Set one `a.b=value` in the nested values and return its path; a value is TOML, or else text."""
    key, separator, text = override.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not separator or not all(path):
        raise ExperimentError(f"{override!r}: expected KEY=VALUE, as in fabric.k=8")
    table = values
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ExperimentError(f"{override!r}: {part} is not a table")
    table[path[-1]] = _value(path[-1], text.strip())
    return path


def _value(key: str, text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return [part.strip() for part in text.split(",")] if key == "policies" else text


def _sizes(values: Any) -> Any:
    """Replace sizes in text by bytes, in keys that end in `_bytes`."""
    if not isinstance(values, dict):
        return values
    return {key: _bytes(value) if str(key).endswith("_bytes") else _sizes(value) for key, value in values.items()}


def _bytes(value: Any) -> Any:
    found = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found:
        return value
    number, prefix, binary = found.groups()
    size = float(number) * (1024 if binary else 1000) ** PREFIXES[prefix]
    return int(size) if size == int(size) else value


def size_in_bytes(text: str) -> int:
    """Return the bytes of "1MiB", "64KiB", "16 MB" or a plain number; raises ExperimentError."""
    size = int(text) if text.isascii() and text.isdigit() else _bytes(text)
    if not isinstance(size, int):
        raise ExperimentError(f"{text!r} is not a size: expected bytes, or a number and a unit, as in 1MiB or 64 KB")
    return size


def _refuse_unknown_policies(experiment: Experiment, text: str, source: str, overridden: Sequence[KeyPath]) -> None:
    where = _where(("policies",), text, source, overridden)
    if not experiment.policies:
        raise ExperimentError(f"{where}: policies is empty: name at least one load balancer")
    for slug in experiment.policies:
        if slug not in POLICIES:
            raise ExperimentError(f"{where}: no load balancer {slug!r}{_nearest(slug, POLICIES)}; there are {', '.join(POLICIES)}")


def _explain(error: ValidationError, text: str, source: str, overridden: Sequence[KeyPath]) -> str:
    problem = error.errors()[0]
    path = problem["loc"]
    where, name = _where(path, text, source, overridden), ".".join(map(str, path))
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown key {name}{_nearest(str(path[-1]), _known_keys(path[:-1]))}"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{where}: {name} = {_brief(problem['input'])}: {message}"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _known_keys(path: KeyPath) -> list[str]:
    model: Any = Experiment
    for part in path:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return []
        model = field.annotation
    return list(model.model_fields)


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _where(path: KeyPath, text: str, source: str, overridden: Sequence[KeyPath]) -> str:
    """Return `file:line` of a key, or the override that set it."""
    for override in overridden:
        if tuple(path[: len(override)]) == override:
            return f"--set {'.'.join(override)}"
    line = _line_of([part for part in path if isinstance(part, str)], text)
    return f"{source}:{line}" if line else source


def _line_of(keys: Sequence[str], text: str) -> int:
    """Return the line (from 1) on which a key stands, or its nearest table, or 0."""
    table: list[str] = []
    best, depth = 0, 0
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([^\]]*?)\s*\]+", line)
        key = re.match(r"\s*([A-Za-z0-9_.\-\"']+)\s*=", line)
        if header:
            table = _parts(header[1])
        here = table if header else table + _parts(key[1]) if key else []
        shared = len(here) if here and list(keys[: len(here)]) == here else 0
        if shared > depth:
            best, depth = number, shared
    return best


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def experiment_toml(experiment: BaseModel) -> str:
    """Return an experiment (or scenario) as TOML text; `parse_experiment` reads an equal one back. Unset values are left out."""
    values = {key: value for key, value in experiment.model_dump(mode="python").items() if value is not None}
    plain = [f"{key} = {_toml(value)}" for key, value in values.items() if not isinstance(value, Mapping)]
    tables = [(key, value) for key, value in values.items() if isinstance(value, Mapping)]
    for name, table in tables:
        plain += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items() if value is not None)]
    return "\n".join(plain) + "\n"


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case Mapping():
            return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items() if item is not None) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case _:
            return str(value)


def _quoted(text: str) -> str:
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else "\\" + c if c in '"\\' else c for c in text)
    return f'"{escaped}"'
