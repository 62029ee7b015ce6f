"""Load balancers that fit the allowed changes, and needs of each in switches, packets, NICs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fattree.experiment.model import HostRule, Scenario, Settings
from fattree.policies import POLICIES, LabelRule, Policy

Change = Literal["switches", "hosts", "both"]
# Every switch has it: nothing needs to be changed.
BASE = "flow"
NO_STATE = "none"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A load balancer: a row of the table, or a user's program or host rule like such a row."""

    name: str
    label: str
    policy: str
    program: str | None = None
    host_rule: HostRule | None = None

    @property
    def row(self) -> Policy:
        """Return the row of the table, for a user's own candidate the row that it is like."""
        return POLICIES[self.policy]

    @property
    def is_own(self) -> bool:
        """Return whether it is a user's."""
        return self.program is not None or self.host_rule is not None

    def scenario(self, settings: Settings, seed: int) -> Scenario:
        """Return its run of an experiment."""
        values = {name: getattr(settings, name) for name in Settings.model_fields}
        return Scenario(
            policy=self.policy,
            program=self.program,
            host_rule=self.host_rule,
            seed=seed,
            **values,
        )


@dataclass(frozen=True, slots=True)
class Needs:
    """Needs of a load balancer: state of a switch and of a host, headers, order of packets."""

    switch_state: str
    host_state: str
    headers: str
    reorders: bool | None

    def cells(self) -> tuple[str, str, str, str]:
        """Return the cells of a table."""
        order = {True: "take any order", False: "as they are", None: "not known"}
        return self.switch_state, self.host_state, self.headers, order[self.reorders]


def needs(candidate: Candidate) -> Needs:
    """Return the needs of a load balancer."""
    if candidate.is_own:
        return Needs(
            "your program's" if candidate.program else NO_STATE,
            "your rule's" if candidate.host_rule else NO_STATE,
            "yours",
            None,
        )

    row = candidate.row
    is_switch = row.where == "switch"
    return Needs(
        switch_state=row.state if is_switch else NO_STATE,
        host_state=NO_STATE if is_switch else row.state,
        headers=_headers(row),
        reorders=row.reorders,
    )


def _headers(row: Policy) -> str:
    if row.outer_bytes:
        return f"{row.outer_bytes} bytes in front"

    is_labelled = row.label_rule is not LabelRule.FIXED or row.subflows > 1
    return "UDP source port varies" if is_labelled else "none"


def fitting(
    change: Change, nics: str, chosen: Sequence[str] = (), *, is_lossless: bool = False
) -> list[Candidate]:
    """Return the rows of the table that fit, the row that changes nothing among them.

    `nics` "in-order": rows that reorder a flow's packets do not fit. `chosen` names rows.
    `is_lossless`: rows without pauses (MRC) do not fit unless they are named.
    """
    return [
        Candidate(slug, row.label, slug)
        for slug, row in POLICIES.items()
        if (slug in chosen if chosen else row.pauses or not is_lossless)
        and _fits(row, change, nics)
    ]


def _fits(row: Policy, change: Change, nics: str) -> bool:
    if nics == "in-order" and row.reorders:
        return False

    places: dict[Change, tuple[str, ...]] = {
        "switches": ("switch",),
        "hosts": ("host",),
        "both": ("switch", "host"),
    }
    return row.slug == BASE or row.where in places[change]


def own_program(program: str, like: str, label: str) -> Candidate:
    """Return a user's program as a candidate."""
    return Candidate(label, label, like, program=program)


def own_rule(rule: HostRule, like: str) -> Candidate:
    """Return a user's host rule as a candidate."""
    return Candidate(rule.file, rule.file, like, host_rule=rule)


def as_json(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate and its needs as JSON values."""
    required = needs(candidate)
    return {
        "name": candidate.name,
        "label": candidate.label,
        "like": candidate.policy if candidate.is_own else None,
        "switch_state": required.switch_state,
        "host_state": required.host_state,
        "headers": required.headers,
        "reorders": required.reorders,
    }
