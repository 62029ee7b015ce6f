"""What all tables of an experiment file have in common."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

# Far beyond any experiment: against a slip of a unit.
MOST_BYTES = 2**40
MOST_RTTS = 10_000
LATEST_NS = 10**14

WITHOUT_EFFECT = "without_effect"

Network = Literal["virtual", "mininet", "sim"]


class Section(BaseModel):
    """A frozen table of the file; unknown keys are errors.

    The sentence below a key is what the reference and the JSON Schema say of it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, values: Any) -> Any:
        # Python, and so pydantic, takes true for 1.
        for key, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, bool) and _is_number(cls.model_fields.get(key)):
                raise wrong(key, f"{key} = {str(value).lower()}: must be a number")

        return values


def _is_number(field: FieldInfo | None) -> bool:
    types = {field.annotation, *get_args(field.annotation)} if field else set()
    return bool not in types and not types.isdisjoint({int, float})


def only_on(*networks: Network) -> Any:
    """Say of a key which networks heed it; the others refuse it."""
    return Field(json_schema_extra={"networks": list(networks)})


def wrong(key: str | tuple[str | int, ...], problem: str) -> PydanticCustomError:
    """Return the error of a key that does not go with others; a path is seen from this table."""
    path = (key,) if isinstance(key, str) else key
    return PydanticCustomError(WITHOUT_EFFECT, "{problem}", {"path": path, "problem": problem})
