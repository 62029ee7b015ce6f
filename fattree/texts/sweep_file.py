"""Read sweep files: an experiment file in which the last table, `[sweep]`, lists values of keys.

Every combination is run.

    [sweep]
    "fabric.k" = [4, 8]
    "collective.message_bytes" = ["64KiB", "1MiB"]
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fattree.errors import ExperimentError
from fattree.experiment.mistakes import WITHOUT_EFFECT, expectation
from fattree.experiment.model import Experiment, Scenario
from fattree.experiment.sizes import size_in_bytes
from fattree.files.text_file import read_text
from fattree.texts.experiment_file import FILES, parse_experiment, parse_toml
from fattree.texts.experiment_writer import toml_value
from fattree.texts.explanations import likely
from fattree.texts.job_keys import (
    JOBS,
    by_name,
    is_of_collective,
    is_of_job,
    job_names,
    split_key,
)
from fattree.texts.toml_places import lines_of

HEADER = re.compile(r"^\s*\[\[?\s*sweep\s*\]", re.MULTILINE)
MOST_RUNS = 1_000_000
PATHS = {"fabric.topology", *(f"{table}.file" for table in FILES)}


def load_sweep(path: str | Path, overrides: Iterable[str] = ()) -> list[Scenario]:
    """Read a sweep file and return its runs: all combinations, seeds and load balancers.

    Raises ExperimentError.
    """
    return parse_sweep(read_text(path, ExperimentError), str(path), overrides, Path(path).parent)


def parse_sweep(
    text: str, source: str, overrides: Iterable[str] = (), folder: Path | None = None
) -> list[Scenario]:
    """Return the runs of a sweep in TOML text; `source` names it in errors.

    Files, swept ones too, are sought in `folder`, those in an override in the current folder.
    Without `[sweep]`, the runs are those of the experiment. An override takes the place of a key's
    values.
    """
    header = HEADER.search(text)
    settings = list(overrides)
    overridden = {setting.partition("=")[0].strip() for setting in settings}
    axes = _axes(text, header.start(), source) if header else {}
    # The command line's values hold for all runs.
    axes = {key: values for key, values in axes.items() if key not in overridden}
    axes = {key: _anchored(key, values, folder) for key, values in axes.items()}
    base = _base(
        text[: header.start()] if header else text,
        axes,
        text,
        source,
        overrides=settings,
        folder=folder,
    )

    if prod(map(len, axes.values())) * base.runs > MOST_RUNS:
        raise ExperimentError(f"{source}: more than {MOST_RUNS:,} runs")

    # Each value on its own first: an error names one key and not a combination.
    values = base.model_dump()
    for key, choices in axes.items():
        for number, value in enumerate(choices):
            _experiment(
                values, {key: value}, partial(_where, text=text, source=source, number=number)
            )

    return list(_scenarios(values, axes, partial(_where, text=text, source=source)))


def _base(
    head: str,
    axes: Mapping[str, list[Any]],
    text: str,
    source: str,
    *,
    overrides: Iterable[str],
    folder: Path | None,
) -> Experiment:
    """Return the experiment above `[sweep]`.

    Collectives are those of the sweep's first values: which keys they may have depends on them.
    """
    first = {key: values[0] for key, values in axes.items() if is_of_collective(key.split("."))}
    try:
        return parse_experiment(
            head,
            source,
            [*overrides, *(f"{key}={toml_value(value)}" for key, value in first.items())],
            folder=folder,
        )
    except ExperimentError as error:
        message = str(error)
        for key in first:
            where = f"{_where(key, text, source)}:"
            message = message.replace(f"--set {key}:", where)
            # A key that names no job.
            if message.startswith(f"{key}:"):
                message = f"{where} {message}"

        raise ExperimentError(message) from None


def _anchored(key: str, values: list[Any], folder: Path | None) -> list[Any]:
    if folder is None or not _is_path(key):
        return values

    return [str(folder / value) if isinstance(value, str) else value for value in values]


def _is_path(key: str) -> bool:
    return key in PATHS or (is_of_job(key.split(".")) and key.endswith(".collective.file"))


def _axes(text: str, start: int, source: str) -> dict[str, list[Any]]:
    """Return the values of every swept key, sizes in bytes."""
    # Read alone, the tail shows whether any table follows; all of the text, that nothing is twice.
    everything = parse_toml(text, source)
    tail = parse_toml(text[start:], source)
    position = f"{source}:{lines_of(text)[('sweep',)]}"
    if set(tail) != {"sweep"}:
        raise ExperimentError(f"{position}: [sweep] must be the last table of the file")
    if not isinstance(tail["sweep"], dict):
        raise ExperimentError(f"{position}: there is one sweep: write [sweep], not [[sweep]]")

    return {
        key: _choices(key, value, _where(key, text, source))
        for key, value in _dotted(everything["sweep"])
    }


def _dotted(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    # "fabric.k" in quotes is one key, fabric.k without them a table in a table: both are meant.
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _choices(key: str, values: Any, where: str) -> list[Any]:
    if not isinstance(values, list) or not values:
        raise ExperimentError(
            f'{where}: {key}: expected a list of values, as in "fabric.k" = [4, 8]'
        )

    if not key.endswith("_bytes"):
        return values

    try:
        return [size_in_bytes(value) if isinstance(value, str) else value for value in values]
    except ExperimentError as error:
        raise ExperimentError(f"{where}: {key}: {error}") from None


def _scenarios(
    values: dict[str, Any], axes: dict[str, list[Any]], where: Callable[[str], str]
) -> Iterator[Scenario]:
    for point in product(*axes.values()):
        yield from _experiment(values, dict(zip(axes, point, strict=True)), where).scenarios()


def _experiment(
    values: dict[str, Any], point: Mapping[str, Any], where: Callable[[str], str]
) -> Experiment:
    """Return the experiment at one point of the sweep.

    Raises ExperimentError with the line of the wrong key, from `where`.
    """
    merged = values
    for key, value in point.items():
        try:
            merged = _replaced(merged, _numbered(key, merged), value)
        except ExperimentError as error:
            raise ExperimentError(f"{where(key)}: {error}") from None

        # The text that is there is of the file that was.
        if key in ("host_rule.file", "agent_packet.file"):
            merged = _replaced(merged, [key.partition(".")[0], "text"], None)

    try:
        experiment = Experiment.model_validate(merged)
        next(experiment.scenarios(), None)
    except ValidationError as error:
        raise ExperimentError(_explain(error, merged, point, where)) from None

    return experiment


def _numbered(key: str, values: Mapping[str, Any]) -> list[Any]:
    """Return a dotted key's parts, a job's number in the place of its name."""
    path = key.split(".")
    if not is_of_job(path):
        return path

    number, rest = split_key(path, job_names(values))
    return [JOBS, number, *rest]


def _replaced(values: Any, path: list[Any], value: Any) -> Any:
    if not path:
        return value

    if isinstance(path[0], int):
        return [
            _replaced(element, path[1:], value) if number == path[0] else element
            for number, element in enumerate(values)
        ]

    table = values if isinstance(values, dict) else {}
    return {**table, path[0]: _replaced(table.get(path[0], {}), path[1:], value)}


def _explain(
    error: ValidationError,
    merged: Mapping[str, Any],
    point: Mapping[str, Any],
    where: Callable[[str], str],
) -> str:
    problem = error.errors()[0]
    path = problem["loc"]
    if problem["type"] == WITHOUT_EFFECT:
        path = (*path, *problem["ctx"]["path"])

    name = ".".join(map(str, by_name(path, job_names(merged))))

    key = next(
        (
            key
            for key in point
            if name == key or name.startswith(f"{key}.") or key.startswith(f"{name}.")
        ),
        next(iter(point)),
    )

    if problem["type"] == "extra_forbidden":
        return f"{where(key)}: unknown key {key}{likely(problem['loc'], merged)}"
    if problem["type"] == WITHOUT_EFFECT:
        return f"{where(key)}: {problem['msg']}"

    return f"{where(key)}: {key} = {point[key]!r}: {expectation(problem)}"


def _where(key: str, text: str, source: str, number: int | None = None) -> str:
    """Return `file:line` of a key in the sweep table, or of a value of it by its number."""
    places = lines_of(text)
    element = () if number is None else (number,)
    path = next(
        path for path in places if path[0] == "sweep" and ".".join(map(str, path[1:])) == key
    )
    value = (*path, *element)
    return f"{source}:{places[value]}"
