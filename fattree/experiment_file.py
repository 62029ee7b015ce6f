"""Read and write experiment files: TOML in, `Experiment` out, one line for whatever is wrong.

Sizes (keys that end in `_bytes`) may be written as text: "1MiB", "64KiB", "16 MB". `convergence_rtt
= inf` is plain TOML.
"""

import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fattree.errors import ExperimentError, FabricError
from fattree.experiment import (
    LIKE,
    MATRIX_KEYS,
    WITHOUT_EFFECT,
    Collective,
    Experiment,
    Scenario,
    Settings,
    no_such_key,
)
from fattree.failures import named_outages
from fattree.policies import POLICIES
from fattree.text_file import read_text
from fattree.traffic import check_collective

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# No more digits than a double holds exactly.
SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kKMGT]?)(i?)B", re.ASCII)
# What TOML's literal strings of several lines may hold, but for their own end.
PLAIN_LINES = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f]*")
EXPECTED = {"model_type": "must be a table", "tuple_type": "must be a list"}
PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
KeyPath = tuple[Any, ...]

# Words that other tools have for what is a key of another table here.
ELSEWHERE = dict.fromkeys(("gpus", "nodes", "servers", "size"), "fabric.k makes k*k*k/4 hosts")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where keys come from: a file's text, or an override."""

    text: str
    source: str
    overridden: Sequence[KeyPath]

    def of(self, path: KeyPath) -> str:
        """Return `file:line` of a key, or the override that set it."""
        for override in self.overridden:
            if tuple(path[: len(override)]) == override:
                return f"--set {'.'.join(override)}"

        line = _line_of([part for part in path if isinstance(part, str)], self.text)
        return f"{self.source}:{line}" if line else self.source


def load_experiment(
    path: str | Path, overrides: Iterable[str] = (), takes_program: bool = False
) -> Experiment:
    """Read an experiment file and apply overrides such as `fabric.k=8` or `policies=ofan,jsq`.

    Raises ExperimentError.

    A `collective.file` is sought in the experiment's folder, one in an override in the current
    folder; so is `program.file`. A `[program]` is refused unless the caller runs P4.
    """
    text = read_text(path, ExperimentError)
    if not _parse_toml(text, str(path)):
        raise ExperimentError(
            f"{path}: the file sets nothing: ofan experiments show demo is an example"
        )

    return parse_experiment(
        text,
        source=str(path),
        overrides=overrides,
        folder=Path(path).parent,
        takes_program=takes_program,
    )


def parse_experiment(
    text: str,
    source: str,
    overrides: Iterable[str] = (),
    folder: Path | None = None,
    takes_program: bool = False,
) -> Experiment:
    """Read an experiment from TOML text.

    `source` names it in errors, relative paths start at `folder`.
    """
    values = _parse_toml(text, source)
    _anchor(values, folder)
    place = _Place(text, source, [_override(values, override) for override in overrides])

    try:
        experiment = Experiment.model_validate(_sizes(values))
    except ValidationError as error:
        raise ExperimentError(_explain(error, place, values)) from None

    for path, problem in _problems(experiment):
        raise ExperimentError(f"{place.of(path)}: {problem}")

    if experiment.program and not takes_program:
        raise ExperimentError(
            f"{place.of(('program',))}: only `ofan emulate` runs a program of yours"
        )

    return experiment


def host_rule_settings(file: Path | None, like: str | None) -> list[str]:
    """Return the overrides that let a host rule run in place of an experiment's load balancers.

    Those that are named later run beside it. Raises ExperimentError for `like` without a file.
    """
    if file is None:
        if like:
            raise ExperimentError("--like needs --host-rule")

        return []

    values = {"file": str(file)} | ({"like": like} if like else {})
    return [f"host_rule={toml_value(values)}", "policies=[]"]


def agent_packet_settings(file: Path | None) -> list[str]:
    """Return the overrides that let hosts send packets of the user's."""
    return [f"agent_packet={toml_value({'file': str(file)})}"] if file else []


def _parse_toml(text: str, source: str) -> dict[str, Any]:
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExperimentError(
            f"{source}: not TOML: "
            f"{str(error).splitlines()[0] if str(error) else 'nested too deeply'}"
        ) from None

    return values


# The tables that name a file.
FILES = ("collective", "program", "host_rule", "agent_packet")


def _anchor(values: dict[str, Any], folder: Path | None) -> None:
    jobs = values.get("jobs")
    tables = [values.get(name) for name in FILES]
    tables += [
        job.get("collective")
        for job in (jobs if isinstance(jobs, list) else ())
        if isinstance(job, dict)
    ]
    fabric = values.get("fabric")
    if folder and isinstance(fabric, dict) and isinstance(fabric.get("topology"), str):
        fabric["topology"] = str(folder / fabric["topology"])

    for table in tables:
        if folder is not None and isinstance(table, dict) and isinstance(table.get("file"), str):
            table["file"] = str(folder / table["file"])


def _override(values: dict[str, Any], override: str) -> KeyPath:
    """Set one `a.b=value` in the nested values and return its path.

    A value is TOML, or else text.
    """
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
    # What is no TOML is text, so that a shell's user need not quote twice: `matrix=ring`. Load
    # balancers are a list.
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return [part.strip() for part in text.split(",")] if key == "policies" else text


def _sizes(values: Any) -> Any:
    """Replace sizes in text by bytes, in keys that end in `_bytes`."""
    if isinstance(values, list):
        return [_sizes(value) for value in values]

    if not isinstance(values, dict):
        return values

    return {
        key: _bytes(value) if str(key).endswith("_bytes") else _sizes(value)
        for key, value in values.items()
    }


def _bytes(value: Any) -> Any:
    found = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found:
        return value

    number, prefix, binary = found.groups()
    size = float(number) * (1024 if binary else 1000) ** PREFIXES[prefix]

    # Half a byte stays text, which pydantic then refuses with the key's name.
    return int(size) if size == int(size) else value


def size_in_bytes(text: str) -> int:
    """Return the bytes of "1MiB", "64KiB", "16 MB" or a plain number; raises ExperimentError."""
    size = int(text) if text.isascii() and text.isdigit() else _bytes(text)
    if not isinstance(size, int):
        raise ExperimentError(
            f"{text!r} is not a size: expected bytes, or a number and a unit, as in 1MiB or 64 KB"
        )

    return size


def _problems(experiment: Experiment) -> Iterator[tuple[KeyPath, str]]:
    """Yield what pydantic cannot see, with its key: names, and traffic that does not fit."""
    if not (experiment.policies or experiment.program or experiment.host_rule):
        yield ("policies",), "policies is empty: name at least one load balancer"

    for slug in experiment.policies:
        if slug not in POLICIES:
            yield (
                ("policies",),
                f"no load balancer {slug!r}{_nearest(slug, POLICIES)}; "
                f"there are {', '.join(POLICIES)}",
            )

        if experiment.policies.count(slug) > 1:
            yield ("policies",), f"policies names {slug} twice"

    scenario = next(
        experiment.model_copy(update={"policies": experiment.policies or LIKE[:1]}).scenarios()
    )
    try:
        named_outages(scenario)
    except FabricError as error:
        yield ("failures", "events"), str(error)

    yield from _traffic_problems(scenario)


def _traffic_problems(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    for number, job in enumerate(scenario.jobs):
        for key in job.collective.unheeded:
            yield ("jobs", number, "collective", key), no_such_key(job.collective, key)

    collective = scenario.collective
    for key in collective.unheeded:
        yield ("collective", key), no_such_key(collective, key)

    try:
        check_collective(scenario)
    except FabricError as error:
        given = {"pairs": collective.pairs, "file": collective.file}.get(collective.matrix)
        place = ("collective", collective.matrix if given else "matrix")
        yield ("jobs",) if scenario.jobs else place, str(error)


def _explain(error: ValidationError, place: _Place, values: Mapping[str, Any]) -> str:
    # A key that does not exist first: the one that is missing is what it should have been.
    problem = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    path = problem["loc"]
    kind = problem["type"]
    where = place.of(path)
    name = ".".join(map(str, path))

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
        return _nearest(word, _known_keys(path[:-1]))
    if word in ELSEWHERE:
        return f" ({ELSEWHERE[word]})"

    collective = values.get("collective")
    matrix = collective.get("matrix", "permutation") if isinstance(collective, Mapping) else None
    keys = next((keys for name, keys in MATRIX_KEYS.items() if name == matrix), None)
    if keys is None:
        return _nearest(word, Collective.model_fields)

    return _nearest(word, ["matrix", *keys]) or f" (matrix {matrix} takes {', '.join(keys)})"


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


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _line_of(keys: Sequence[str], text: str) -> int:
    """Return the line (from 1) on which a key stands, or its nearest table, or 0."""
    # tomllib keeps no positions. This reads lines as a person would: the deepest key that is a
    # beginning of the one sought wins, so a missing key is reported at its table.
    table: list[str] = []
    best = 0
    depth = 0

    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([^\]]*?)\s*\]+", line)
        key = re.match(r"\s*([A-Za-z0-9_.\-\"']+)\s*=", line)
        if header:
            table = _parts(header[1])

        here = table if header else table + _parts(key[1]) if key else []
        shared = len(here) if here and list(keys[: len(here)]) == here else 0
        if shared > depth:
            best = number
            depth = shared

    return best


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def experiment_toml(experiment: BaseModel) -> str:
    """Return an experiment (or scenario) as TOML text; `parse_experiment` reads an equal one back.

    Unset values are left out, and so are keys that the collective does not heed.
    """
    values = {
        key: value
        for key, value in experiment.model_dump(mode="python").items()
        if value is not None
    }
    if "collective" in values:
        values["collective"] = _heeded(values["collective"])

    # A table of jobs beside one of a collective would be one too many.
    if "jobs" in values:
        jobs = values.pop("jobs")
        if jobs:
            values.pop("collective")
            values["jobs"] = [{**job, "collective": _heeded(job["collective"])} for job in jobs]

    plain = [
        f"{key} = {toml_value(value)}"
        for key, value in values.items()
        if not isinstance(value, Mapping)
    ]
    tables = [(key, value) for key, value in values.items() if isinstance(value, Mapping)]
    for name, table in tables:
        plain += [
            "",
            f"[{name}]",
            *(f"{key} = {toml_value(value)}" for key, value in table.items() if value is not None),
        ]

    return "\n".join(plain) + "\n"


def _heeded(collective: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("matrix", *MATRIX_KEYS[collective["matrix"]])
    return {key: value for key, value in collective.items() if key in keys}


def toml_value(value: Any) -> str:
    """Return a value as TOML."""
    # bool first: True is an int as well, and TOML writes it small.
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case Mapping():
            return (
                "{ "
                + ", ".join(
                    f"{key} = {toml_value(item)}" for key, item in value.items() if item is not None
                )
                + " }"
            )
        case list() | tuple():
            return "[" + ", ".join(map(toml_value, value)) + "]"
        case _:
            return str(value)


def _quoted(text: str) -> str:
    # Text of several lines as people write it, where nothing in it means anything to TOML.
    if "\n" in text and PLAIN_LINES.fullmatch(text) and "'''" not in f"{text}''":
        return f"'''\n{text}'''"

    # TOML's basic strings: quotes, backslashes and control characters are escaped.
    escaped = "".join(
        f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else "\\" + c if c in '"\\' else c
        for c in text
    )

    return f'"{escaped}"'
