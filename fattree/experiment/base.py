"""The base of all tables of an experiment file."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from typing_extensions import Self

from fattree.errors import ExperimentError
from fattree.experiment.mistakes import WITHOUT_EFFECT, explained
from fattree.experiment.sizes import with_sizes

# Far beyond any experiment: against a slip of a unit.
MOST_BYTES = 2**40
MOST_RTTS = 10_000
LATEST_NS = 10**14

QUOTED_NUMBER = re.compile(r"\s*[-+]?[\d_]*\.?\d[\d_]*([eE][-+]?\d+)?\s*", re.ASCII)

Network = Literal["virtual", "mininet", "sim"]


if TYPE_CHECKING:
    # A call has the types of pydantic's own.
    from pydantic._internal._model_construction import ModelMetaclass as _Explaining
else:

    class _Explaining(type(BaseModel)):
        """The class of tables: a mistake in a call is an ExperimentError of one line.

        Tables that pydantic makes itself, of files, raise its own error with all mistakes.
        """

        def __call__(cls, *positional, **values):
            try:
                return super().__call__(*positional, **values)
            except ValidationError as error:
                raise ExperimentError(explained(error, cls)) from None


class Section(BaseModel, metaclass=_Explaining):
    """A frozen table of the file; unknown keys are errors. Sizes may be text, as in "64KiB".

    The sentence below a key is its text in the reference and the JSON Schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_numbers(cls, values: Any) -> Any:
        values = with_sizes(values)
        # Python, and so pydantic, takes true for 1, and pydantic takes "8" for 8, "yes" for true.
        for key, value in values.items() if isinstance(values, Mapping) else ():
            if key in _flags(cls) and not isinstance(value, bool | None):
                said = json.dumps(value) if isinstance(value, str) else value
                raise wrong(key, f"{key} = {said}: must be true or false")

            # A report's data have millions of numbers.
            if type(value) in (int, float) or key not in _keys_of_numbers(cls):
                continue
            if _has(value, lambda element: isinstance(element, bool)):
                raise wrong(key, f"{key} = {str(value).lower()}: must be a number")
            if _has(
                value, lambda element: isinstance(element, str) and QUOTED_NUMBER.fullmatch(element)
            ):
                said = str(value) if isinstance(value, list) else f'"{value}"'
                raise wrong(key, f"{key} = {said}: must be a number, without quotes")

        return values

    def replaced(self, **values: Any) -> Self:
        """Return a table with other values of some keys; raises ExperimentError as a call does."""
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**kept, **values})


def _has(value: Any, is_wrong: Callable[[Any], object]) -> bool:
    """Return whether a value is wrong, or a list with a wrong value in it."""
    if isinstance(value, list):
        return any(_has(element, is_wrong) for element in value)

    return bool(is_wrong(value))


@cache
def _keys_of_numbers(table: type[Section]) -> frozenset[str]:
    return frozenset(key for key, field in table.model_fields.items() if _is_of_numbers(field))


@cache
def _flags(table: type[Section]) -> frozenset[str]:
    return frozenset(
        key
        for key, field in table.model_fields.items()
        if set(_types(field.annotation)) <= {bool, bool | None, type(None)}
    )


def _is_of_numbers(field: FieldInfo) -> bool:
    types = set(_types(field.annotation))
    return bool not in types and not types.isdisjoint({int, float})


def _types(annotation: Any) -> Iterator[Any]:
    """Yield a type and all those in it."""
    yield annotation
    for inner in get_args(annotation):
        yield from _types(inner)


def only_on(*networks: Network) -> Any:
    """Mark a key as supported by these networks only; all others refuse it."""
    return Field(json_schema_extra={"networks": list(networks)})


def wrong(key: str | tuple[str | int, ...], problem: str) -> PydanticCustomError:
    """Return the error of a key that conflicts with others; its path starts at this table."""
    path = (key,) if isinstance(key, str) else key
    return PydanticCustomError(WITHOUT_EFFECT, "{problem}", {"path": path, "problem": problem})
