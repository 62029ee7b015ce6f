"""What users bring along: P4 programs, host rules, packets."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from fattree.errors import ExperimentError
from fattree.policies import POLICIES, Chooser
from fattree.sections.base import Section
from fattree.text_file import read_text

MOST_OWN_CHARACTERS = 100_000

# Host DR's hosts choose the way, so it has no groups that another program could take.
LIKE = tuple(slug for slug, row in POLICIES.items() if row.chooser is not Chooser.WAYPOINT)


def _has_groups(slug: str) -> str:
    if slug not in LIKE:
        raise ValueError(f"must be one of {', '.join(LIKE)}")

    return slug


Like = Annotated[str, AfterValidator(_has_groups)]


class OwnProgram(Section):
    """A P4 program of the user's, and the load balancer whose groups and hosts it gets."""

    file: Annotated[str, Field(min_length=1)]
    like: Like = "simple_rr"


class OwnText(Section):
    """A Python file of the user's: `text` is all of it, and `file` is what it is called.

    Without the text, it is read from the file.
    """

    file: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(max_length=MOST_OWN_CHARACTERS)]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("file"), str):
            return values

        # What is written down must not depend on files that may change, or that others cannot read.
        name = Path(values["file"]).name
        text = values.get("text")
        text = read_text(values["file"], ExperimentError) if text is None else text
        return {**values, "file": name, "text": text}


class HostRule(OwnText):
    """A host rule of the user's."""


class AgentPacket(OwnText):
    """What packets of the user's look like: functions that build them (`hostagent.own_packet`)."""


class OwnHostRule(HostRule):
    """The same among an experiment's load balancers: what else hosts and switches do is `like`."""

    like: Like = "host_pkt_ar"
