"""Additions of users: P4 programs, host rules, packets."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from fattree.errors import ExperimentError
from fattree.experiment.base import Section, only_on
from fattree.files.text_file import read_text
from fattree.policies import POLICIES

MOST_OWN_CHARACTERS = 100_000
# In the simulator it is an option (`ofan sim run --program`).
EMULATED = only_on("virtual", "mininet")

# Host DR's hosts choose the way, so it has no groups that another program could take.
LIKE = tuple(slug for slug, row in POLICIES.items() if not row.outer_bytes)


def _has_groups(slug: str) -> str:
    if slug not in LIKE:
        raise ValueError(f"must be one of {', '.join(LIKE)}")

    return slug


Like = Annotated[str, AfterValidator(_has_groups)]

MACRO = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Macros that the fabric's size and the network set.
OUR_MACROS = ("MAX_UPLINKS", "MAX_ROUTES", "CONTROL_PRIORITY", "ACK_PRIORITY")


def _macros(values: Any) -> Any:
    if not isinstance(values, Mapping):
        return values

    for name, value in values.items():
        if not MACRO.fullmatch(name) or name in OUR_MACROS:
            raise ValueError(
                f"{name} cannot be your macro: use letters, digits and _, and none of our names"
            )
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError(f"{name}: a macro is a whole number or text")

    return tuple((name, str(value)) for name, value in sorted(values.items()))


# Pairs, which can be compared and hashed, of a table in a file.
Macros = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_macros),
    PlainSerializer(dict),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["integer", "string"]}}),
]


class OwnProgram(Section):
    """A P4 program of the user's, and the load balancer that gives it groups and hosts."""

    file: Annotated[str, Field(min_length=1), EMULATED]
    """Your P4 program (`.p4`, or BMv2 `.json` with its P4Info beside it), run instead of
    `policies`.
    """
    like: Annotated[Like, EMULATED] = "simple_rr"
    """The load balancer whose groups and host behaviour the program gets."""


class OwnText(Section):
    """A Python file of the user's: `text` is its text, `file` its name.

    Without `text`, the text is read from the file.
    """

    file: Annotated[str, Field(min_length=1)]
    """Your Python file with two functions."""
    text: Annotated[str, Field(max_length=MOST_OWN_CHARACTERS)]
    """The file's whole text; by default it is read from `file`. Results folders store the text, and
    there `file` is only a name.
    """

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("file"), str):
            return values

        # A stored experiment must not depend on files that may change, or that others cannot read.
        name = Path(values["file"]).name
        text = values.get("text")
        text = read_text(values["file"], ExperimentError) if text is None else text
        return {**values, "file": name, "text": text}


class HostRule(OwnText):
    """A host rule of the user's."""


class AgentPacket(OwnText):
    """The format of the user's packets: functions that build them (`hostagent.own_packet`)."""


class OwnHostRule(HostRule):
    """A host rule among an experiment's load balancers; all else is as in `like`."""

    like: Like = "host_pkt_ar"
    """The load balancer whose switches and other host settings the rule gets."""
