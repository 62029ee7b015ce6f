"""Read experiment files: TOML in, `Experiment` out, one line for whatever is wrong.

Sizes (keys that end in `_bytes`) may be written as text: "1MiB", "64KiB", "16 MB". `convergence_rtt
= inf` is plain TOML.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fattree.demand.traffic import check_collective
from fattree.errors import ExperimentError, FabricError, nearest
from fattree.experiment.collective import no_such_key
from fattree.experiment.model import NOT_BOTH, Collective, Experiment, Job, Scenario
from fattree.experiment.own import LIKE
from fattree.files.text_file import read_text
from fattree.policies import POLICIES
from fattree.routes.failures import loss_thresholds, named_outages
from fattree.routes.slow_links import paces

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib
from fattree.texts.experiment_writer import toml_value
from fattree.texts.explanations import Where, explain
from fattree.texts.job_keys import JOBS, is_of_job, job_names, split_key
from fattree.texts.toml_places import KeyPath

# No more digits than a double holds exactly.
# tomllib's words for places and tables: Python's tuples.
AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")
DECLARED = re.compile(r"\((?:'[^']*',? ?)+\)")
QUOTED = re.compile(r"'([^']*)'")
TOML_ADVICE = {
    "Invalid value": ', text stands in quotes, as in name = "demo"',
    "Cannot overwrite a value": ", this key is there twice",
}
# A hundred thousand pairs have 1 MB; a table of TOML's takes up to a hundred times its text.
MOST_TOML_BYTES = 2 << 20
# For a key of n parts tomllib makes tables of 1, 2, ... n parts. No key here has more than five.
MOST_PARTS = 8
PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
# Where a key may begin: on a line, in a table's name, in a table within a line.
LONG_KEY = re.compile(
    rf"(?:^|[\[{{,])[ \t]*{PART}(?:[ \t]*\.[ \t]*{PART}){{{MOST_PARTS}}}", re.MULTILINE
)
# Files that are given in another place.
OTHER_KINDS = {
    ".p4": ": a program is given with --program",
    ".py": ": a host rule is given with --host-rule, packets with --agent-packet",
    ".json": ": this is JSON, experiments are TOML; `ofan workload from-model` reads models",
    ".sqlite": ": `ofan sim results` shows a store",
}


def load_experiment(
    path: str | Path, overrides: Iterable[str] = (), takes_program: bool = False
) -> Experiment:
    """Read an experiment file and apply overrides such as `fabric.k=8` or `policies=ofan,jsq`.

    Raises ExperimentError.

    A `collective.file` is sought in the experiment's folder, a file in an override in the current
    folder; so is `program.file`. A `[program]` is refused unless the caller runs P4.
    """
    text = read_text(path, ExperimentError)
    values = parse_toml(text, str(path))
    if not values:
        raise ExperimentError(
            f"{path}: the file sets nothing: ofan experiments show demo is an example"
        )

    _anchor(values, Path(path).parent)
    return _experiment(values, text, str(path), overrides, takes_program)


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
    values = parse_toml(text, source)
    _anchor(values, folder)
    return _experiment(values, text, source, overrides, takes_program)


def _experiment(
    values: dict[str, Any],
    text: str,
    source: str,
    overrides: Iterable[str],
    takes_program: bool,
) -> Experiment:
    """Check the values of a TOML text, which overrides replace, and make an experiment of them."""
    overridden = [_override(values, override) for override in overrides]
    where = Where(text, source, overridden, job_names(values))

    try:
        experiment = Experiment.model_validate(values)
    except ValidationError as error:
        raise ExperimentError(explain(error, where, values)) from None
    except RecursionError:
        raise ExperimentError(f"{source}: a key is nested too deeply") from None

    for path, problem in _problems(experiment):
        raise ExperimentError(f"{where.of(path)}: {problem}")

    if experiment.program and not takes_program:
        raise ExperimentError(
            f"{where.of(('program',))}: only `ofan emulate` runs a program of yours"
            " that a file names; `sim` and `compare` take --program FILE"
        )

    return experiment


def host_rule_settings(file: Path | None, like: str | None) -> list[str]:
    """Return the overrides that let a host rule run in place of an experiment's load balancers.

    Those that are named later run beside it. Raises ExperimentError for `like` without a file.
    """
    if file is None:
        if like:
            raise ExperimentError("--like needs --program or --host-rule")

        return []

    values = {"file": str(file)} | ({"like": like} if like else {})
    return [f"host_rule={toml_value(values)}", "policies=[]"]


def agent_packet_settings(file: Path | None) -> list[str]:
    """Return the overrides that let hosts send packets of the user's."""
    return [f"agent_packet={toml_value({'file': str(file)})}"] if file else []


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Return the values of a TOML text; raises ExperimentError with the line of the mistake."""
    _refuse_large(text, source)
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise ExperimentError(f"{source}: not TOML: nested too deeply") from None
    except ValueError as error:
        raise ExperimentError(_not_toml(str(error), text, source)) from None

    return values


def _refuse_large(text: str, source: str) -> None:
    """Raise ExperimentError for a text that would take gigabytes as tables."""
    if len(text) > MOST_TOML_BYTES:
        raise ExperimentError(f"{source}: has more than {MOST_TOML_BYTES >> 20} MiB of TOML")

    if match := LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise ExperimentError(f"{source}:{line}: a key of more than {MOST_PARTS} parts")


def _not_toml(message: str, text: str, source: str) -> str:
    """Return tomllib's message with the line in front, and tables as they are written."""
    match = AT_LINE.search(message)
    line = int(match[1]) if match and match[1] else len(text.rstrip().split("\n"))
    problem = AT_LINE.sub("", message.splitlines()[0])
    problem = DECLARED.sub(lambda named: f"[{'.'.join(re.findall(QUOTED, named[0]))}]", problem)
    advice = OTHER_KINDS.get(Path(source).suffix) or TOML_ADVICE.get(problem, "")
    return f"{source}:{line}: not TOML: {problem}{advice}"


# The checks of each list of failures: they find its links, and refuse unknown links.
FAILURE_CHECKS: dict[str, Callable[[Scenario], object]] = {
    "events": named_outages,
    "losses": loss_thresholds,
    "degraded": paces,
}
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
    """Set `a.b=value` in the nested values and return its path.

    A value is TOML, or else text.
    """
    key, separator, text = override.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not separator or not all(path):
        raise ExperimentError(f"{override!r}: expected KEY=VALUE, as in fabric.k=8")

    table, inner = values, list(path)
    if is_of_job(path):
        number, inner = split_key(path, job_names(values))
        table = values[JOBS][number]

    for part in inner[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ExperimentError(f"{override!r}: {part} is not a table")

    table[inner[-1]] = _value(path[-1], text.strip())
    return path


def _value(key: str, text: str) -> Any:
    # A value that is no TOML is text, so that a shell's user need not quote twice: `matrix=ring`.
    # Load balancers are a list.
    _refuse_large(text, key)
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return [part.strip() for part in text.split(",")] if key == "policies" else text


def _problems(experiment: Experiment) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes that pydantic cannot see, with their keys: names, unfit traffic."""
    if not (experiment.policies or experiment.program or experiment.host_rule):
        yield ("policies",), "policies is empty: name at least one load balancer"

    for number, slug in enumerate(experiment.policies):
        if slug not in POLICIES:
            yield (
                ("policies", number),
                f"no load balancer {slug!r}{nearest(slug, POLICIES)}; "
                f"there are {', '.join(POLICIES)}",
            )

        if slug in experiment.policies[:number]:
            yield ("policies", number), f"policies names {slug} twice"

    scenario = next(
        experiment.model_copy(update={"policies": experiment.policies or LIKE[:1]}).scenarios()
    )
    yield from _failure_problems(scenario)
    yield from _traffic_problems(scenario)


def _failure_problems(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    for number, loss in enumerate(scenario.failures.losses):
        if loss.share == 1:
            yield (
                ("failures", "losses", number, "share"),
                f"failures.losses: {loss.name} would lose all its packets: a link that has failed"
                " is one of failures.events",
            )

    for key, check in FAILURE_CHECKS.items():
        problem = _refusal(check, scenario)
        if problem:
            yield ("failures", key, *_blamed_failure(scenario, key, check)), problem


def _blamed_failure(
    scenario: Scenario, key: str, check: Callable[[Scenario], object]
) -> tuple[int, ...]:
    """Return the number of the first failure that is wrong by itself, nothing if all are right."""
    for number, failure in enumerate(getattr(scenario.failures, key)):
        alone = scenario.failures.model_copy(update={key: (failure,)})
        if _refusal(check, scenario.model_copy(update={"failures": alone})):
            return (number,)

    return ()


def _refusal(check: Callable[[Scenario], object], scenario: Scenario) -> str:
    """Return a check's error for a scenario, empty without an error."""
    try:
        check(scenario)
    except FabricError as error:
        return str(error)

    return ""


def _traffic_problems(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    for number, job in enumerate(scenario.jobs):
        for key in job.collective.unheeded:
            yield ("jobs", number, "collective", key), no_such_key(job.collective, key)

    collective = scenario.collective
    for key in collective.unheeded:
        yield ("collective", key), no_such_key(collective, key)

    # A copy has every key, a file those of its author.
    if scenario.jobs and collective.model_fields_set:
        yield ("collective",), NOT_BOTH

    try:
        check_collective(scenario)
    except FabricError as error:
        problem = str(error)
        yield _blamed_job(scenario.jobs, problem) or _blamed(collective, problem), problem


def _blamed_job(jobs: Sequence[Job], problem: str) -> KeyPath:
    """Return the wrong key of the job that a problem names, the list where the problem names none.

    Empty without jobs.
    """
    for number, job in enumerate(jobs):
        if problem.startswith(f"job {job.name}: "):
            is_order = job.after is not None and "the job that it is after" in problem
            key = ("after",) if is_order else _blamed(job.collective, problem)
            return (JOBS, number, *key)

    return (JOBS,) if jobs else ()


def _blamed(collective: Collective, problem: str) -> KeyPath:
    """Return the wrong key of a collective: the key that the problem names, or its file."""
    if collective.file:
        return ("collective", "file")

    pair = re.search(r"\bcollective\.pairs\[(\d+)\]", problem)
    if pair:
        return ("collective", "pairs", int(pair[1]))

    keys = sorted(collective.model_fields_set - {"matrix"})
    key = next((key for key in keys if re.search(rf"\b{key}\b", problem)), "matrix")
    return ("collective", key)
