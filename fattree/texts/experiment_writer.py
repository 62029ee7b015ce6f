"""Experiments as TOML, for records and stores of runs."""

import re
import sys
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from fattree.experiment.collective import MATRIX_KEYS

if sys.version_info >= (3, 11):
    pass
else:
    pass


# The characters that TOML's literal strings of several lines may hold, but for their own end.
PLAIN_LINES = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f]*")


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

    # A table of jobs beside a table of a collective would be too many.
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
    tables = [(key, value) for key, value in values.items() if isinstance(value, Mapping) and value]
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
