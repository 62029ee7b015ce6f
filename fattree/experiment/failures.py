"""`[failures]` and `[controller]`: links that fail, and how the controller learns of it."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from fattree.experiment.base import LATEST_NS, MOST_RTTS, Section, only_on

# In recent flaps: above the one a link is left out, below the other it is used again
# (`controller.damping`).
DAMPING_SUPPRESS = 3.0
DAMPING_REUSE = 1.0

# What a slow link carries of its rate at least; less is as good as dead.
LEAST_SHARE = 0.001

# The simulator's controller is told of changes, and forgives none.
EMULATED = only_on("virtual", "mininet")

Detection = Literal["announced", "netlink", "probe"]


class Place(Section):
    """A link between switches, a host's link, or a whole switch: all its links."""

    link: str | None = None
    """A link between switches, `edge0_0-agg0_1` or `agg0_0-core0_1` (one of `link`, `host`,
    `switch`).
    """
    host: str | None = None
    """A host, `h0_1_0`, for its link."""
    switch: str | None = None
    """A switch, `core0_1`, for all its links; an edge takes its hosts with it."""

    @model_validator(mode="after")
    def _one_place(self) -> "Place":
        if sum(name is not None for name in (self.link, self.host, self.switch)) != 1:
            raise ValueError("name one of link, host, switch")

        return self

    @property
    def name(self) -> str:
        """Return what it is called."""
        return self.link or self.host or self.switch or ""


class FailureEvent(Place):
    """Links that fail and perhaps come back, at given times; `times` over, every `every_ns`."""

    host: Annotated[str | None, only_on("virtual", "sim")] = None
    """A host, `h0_1_0`, whose link fails; it must come back if the host has flows."""
    switch: str | None = None
    """A switch, `core0_1`, all of whose links fail; an edge takes its hosts with it (not
    `mininet`).
    """
    down_ns: Annotated[float, Field(ge=0, le=LATEST_NS)]
    """When it fails."""
    up_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] | None = None
    """When it comes back; by default never."""
    times: Annotated[int, Field(ge=1, le=10_000)] = 1
    """How often it fails."""
    every_ns: Annotated[float, Field(gt=0, le=LATEST_NS)] | None = None
    """How long after one failure the next one begins."""

    @model_validator(mode="after")
    def _flaps(self) -> "FailureEvent":
        if (self.times > 1) != (self.every_ns is not None):
            raise ValueError("times and every_ns go together: so often, and how long after another")

        if self.every_ns is None:
            return self

        if self.up_ns is None or not 0 < self.up_ns - self.down_ns < self.every_ns:
            raise ValueError("between two failures the link comes up: up_ns - down_ns < every_ns")

        return self


class Loss(Place):
    """Links that lose this share of their packets, in either direction, at random."""

    share: Annotated[float, Field(gt=0, le=1)]
    """The share of packets that these links lose, in either direction, drawn by the seed (on
    `mininet` by the kernel); no route avoids them.
    """


class Degraded(Place):
    """Links that carry a share of their rate, from a time on, perhaps until another one.

    `up` is the direction towards the cores.
    """

    host: str | None = None
    """A host, for its link, which is slow all the time: without `at_ns` and `until_ns`."""
    rate: Annotated[float, Field(ge=LEAST_SHARE, lt=1)]
    """The share of its rate that such a link carries; routes weigh it, in eighths, from G after the
    change on.
    """
    direction: Literal["both", "up", "down"] = "both"
    """Which direction is slow: `both`, `up` (towards the cores) or `down`."""
    at_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] = 0
    """From when on; by default from the start."""
    until_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] | None = None
    """Until when; by default to the end."""


class Failures(Section):
    """Failed links: drawn at a rate, named, or both; links that lose packets; and slow links.

    `convergence_rtt` is G in zero-load RTTs (`inf`: routes never change).
    """

    rate: Annotated[float, Field(ge=0, le=1)] = 0
    """The probability that a link between switches has failed, drawn for each seed."""
    at_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] = 0
    """When the links that were drawn fail."""
    events: tuple[FailureEvent, ...] = ()
    losses: tuple[Loss, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    convergence_rtt: Annotated[float, Field(ge=0, allow_inf_nan=True)] = 0
    """G: how long after a change (or its detection) routes change; `inf`: never."""
    local_repair: Annotated[bool, only_on("virtual", "sim")] = False
    """Whether switches leave out their own failed links at once."""

    @field_validator("convergence_rtt")
    @classmethod
    def _finite_or_never(cls, rtts: float) -> float:
        if not (rtts <= MOST_RTTS or rtts == float("inf")):
            raise ValueError(f"must be from 0 to {MOST_RTTS:,}, or inf for never")

        return rtts


class Controller(Section):
    """How the controller learns of failures, and how it treats links that come and go.

    G (`failures.convergence_rtt`) runs from the moment at which it learns of a change: with
    `announced` that is the change itself.
    """

    detection: Detection = "announced"
    """How failures are found: told at once, by the kernel's link events (`mininet` only), or by
    probes (not `sim`).
    """
    probe_interval_us: Annotated[float | None, Field(ge=0.001, le=10**9), EMULATED] = None
    """How often every link is probed; by default from the fabric's round trip."""
    probe_misses: Annotated[int | None, Field(ge=1, le=1_000), EMULATED] = None
    """How many probes in a row are missed until a link counts as failed."""
    damping_half_life_us: Annotated[float | None, Field(ge=0.001, le=10**12), EMULATED] = None
    """Flap damping: when a link's record of flaps has halved; by default no damping."""
    damping_suppress: Annotated[float | None, Field(gt=0, le=1_000), EMULATED] = None
    """Flap damping: above so many recent flaps a link is left out (3)."""
    damping_reuse: Annotated[float | None, Field(gt=0, le=1_000), EMULATED] = None
    """Flap damping: below so many it is used again (1)."""

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> "Controller":
        if self.detection != "probe" and (self.probe_interval_us, self.probe_misses) != (
            None,
            None,
        ):
            raise ValueError(
                "probe_interval_us and probe_misses need "
                f'detection = "probe", not "{self.detection}"'
            )

        if self.damping_half_life_us is None and (self.damping_suppress, self.damping_reuse) != (
            None,
            None,
        ):
            raise ValueError("damping_suppress and damping_reuse need damping_half_life_us")

        suppress = self.damping_suppress or DAMPING_SUPPRESS
        reuse = self.damping_reuse or DAMPING_REUSE
        if reuse >= suppress:
            raise ValueError(
                f"damping_reuse = {reuse:g} must be below damping_suppress = {suppress:g}"
            )

        return self
