"""Mistakes in the keys of a table, in the words of its keys."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fattree.errors import nearest

WITHOUT_EFFECT = "without_effect"

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
    # Only names have a pattern: of experiments and jobs.
    "string_pattern_mismatch": "must be of letters, digits and _ . -, and begin without . and -",
}


def explained(error: ValidationError, model: type[BaseModel]) -> str:
    """Return one line of the first mistake in a table that Python code makes."""
    # A key that does not exist first: the missing key is probably the key that was meant.
    problem = min(
        error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden"
    )
    path = problem["loc"]
    name = ".".join(map(str, path))
    if problem["type"] == "extra_forbidden":
        return f"unknown key {name}{nearest(str(path[-1]), known_keys(model, path[:-1]))}"
    if problem["type"] == "missing":
        return f"{name} is missing"

    # A message of ours names its keys.
    expected = expectation(problem)
    is_ours = not path or problem["type"] in (WITHOUT_EFFECT, "value_error")
    return expected if is_ours else f"{name} = {brief(problem['input'])}: {expected}"


def expectation(problem: Mapping[str, Any]) -> str:
    """Return the demand on a value that pydantic refuses, of an item of its `errors()`."""
    kind = problem["type"]
    if kind.startswith("int_") and str(problem["loc"][-1]).endswith("_bytes"):
        return 'must be bytes, or text with a unit, as in 65536 or "64KiB"'
    if kind == "tuple_type" and isinstance(problem["input"], Mapping):
        return f"must be a list: write [[{'.'.join(map(str, problem['loc']))}]]"
    if kind == "too_long":
        return f"must have {problem['ctx']['max_length']:,} elements at most"

    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    expected = EXPECTED.get(kind, message)
    if kind == "literal_error":
        expected += nearest(str(problem["input"]), re.findall("'([^']+)'", expected))

    return str(expected)


def brief(value: Any) -> str:
    """Return a value as text of at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def known_keys(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Return the keys of the table at a path from a model; none where there is no table."""
    for part in path:
        # A number is a place in a list with elements of one kind.
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
            member
            for member in (annotation, *get_args(annotation))
            if isinstance(member, type) and issubclass(member, BaseModel)
        ),
        None,
    )
