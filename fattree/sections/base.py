"""What all tables of an experiment file have in common."""

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

# Far beyond any experiment: against a slip of a unit.
MOST_BYTES = 2**40
MOST_RTTS = 10_000
LATEST_NS = 10**14

WITHOUT_EFFECT = "without_effect"


class Section(BaseModel):
    """A frozen table of the file; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def wrong(key: str, problem: str) -> PydanticCustomError:
    """Return the error of a key that does not go with the others of its table."""
    return PydanticCustomError(WITHOUT_EFFECT, "{problem}", {"key": key, "problem": problem})
