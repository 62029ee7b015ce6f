"""`[failures]` and `[controller]`: links that fail, and how the controller learns of it."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from fattree.experiment.base import LATEST_NS, MOST_RTTS, Section, only_on

# In recent flaps: above the first a link is left out, below the second it is used again
# (`routes.damping`).
DAMPING_SUPPRESS = 3.0
DAMPING_REUSE = 1.0

# The least share of its rate that a slow link carries; less is as good as dead.
LEAST_SHARE = 0.001

# Probes are packets of a controller that the simulator does not have.
ON_VIRTUAL_LINKS = only_on("virtual", "sim")

# Each lag is another time at which the whole fabric's routes are worked out.
MOST_LAGS = 64

Lag = Annotated[float, Field(ge=0, le=MOST_RTTS)]
Detection = Literal["announced", "netlink", "probe"]
Weights = Literal["exact", "bgp"]
Kind = Literal["central", "bgp"]


class Place(Section):
    """A link between switches, a host's link, or a whole switch: all its links."""

    link: str | None = None
    """A link between switches, `edge0_0-agg0_1` or `agg0_0-core0_1` (one of `link`, `host`,
    `switch`).
    """
    host: str | None = None
    """A host, `h0_1_0`, as the name of its link."""
    switch: str | None = None
    """A switch, `core0_1`, as the name of all its links; with an edge also its hosts' links."""

    @model_validator(mode="after")
    def _one_place(self) -> "Place":
        if sum(name is not None for name in (self.link, self.host, self.switch)) != 1:
            raise ValueError("name one of link, host, switch")

        return self

    @property
    def name(self) -> str:
        """Return the name of the link, host or switch."""
        return self.link or self.host or self.switch or ""


class FailureEvent(Place):
    """Links that fail and perhaps come back, at given times; `times` over, every `every_ns`."""

    host: Annotated[str | None, only_on("virtual", "sim")] = None
    """A host, `h0_1_0`, whose link fails; it must come back if the host has flows, unless
    `fabric.plane_use = "draw"` has another port for them.
    """
    switch: str | None = None
    """A switch, `core0_1`, all of whose links fail; with an edge also its hosts' links (not on
    `mininet`).
    """
    down_ns: Annotated[float, Field(ge=0, le=LATEST_NS)]
    """The time at which it fails."""
    up_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] | None = None
    """The time at which it comes back; by default never."""
    times: Annotated[int, Field(ge=1, le=10_000)] = 1
    """How often it fails."""
    every_ns: Annotated[float, Field(gt=0, le=LATEST_NS)] | None = None
    """The time from the start of one failure to the start of the next."""

    @model_validator(mode="after")
    def _flaps(self) -> "FailureEvent":
        if (self.times > 1) != (self.every_ns is not None):
            raise ValueError(
                "times and every_ns go together: the number of failures and their period"
            )

        if self.every_ns is None:
            return self

        if self.up_ns is None or not 0 < self.up_ns - self.down_ns < self.every_ns:
            raise ValueError(
                "the link must come up between two failures: up_ns - down_ns < every_ns"
            )

        return self


class Loss(Place):
    """Links that lose this share of their packets, in either direction, at random."""

    share: Annotated[float, Field(gt=0, le=1)]
    """The share of packets that these links lose, in either direction, drawn by the seed (on
    `mininet` by the kernel); routes do not avoid these links.
    """


class Degraded(Place):
    """Links that send at a share of their rate, from one time on, perhaps until a second time.

    `up` is the direction towards the cores.
    """

    host: str | None = None
    """A host, as the name of its link, which is slow during the whole run: without `at_ns` and
    `until_ns`.
    """
    rate: Annotated[float, Field(ge=LEAST_SHARE, lt=1)]
    """The share of its rate at which such a link sends; routes give it less weight, in eighths,
    from G after the change on.
    """
    direction: Literal["both", "up", "down"] = "both"
    """Which direction is slow: `both`, `up` (towards the cores) or `down`."""
    at_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] = 0
    """The time from which the link is slow; by default from the start."""
    until_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] | None = None
    """The time until which the link is slow; by default to the end."""


class Storm(Section):
    """A host that pauses its link all the time, from one time on, perhaps until a second."""

    host: Annotated[str, ON_VIRTUAL_LINKS]
    """The host, `h0_1_0`."""
    at_ns: Annotated[float, Field(ge=0, le=LATEST_NS), ON_VIRTUAL_LINKS] = 0
    """The time from which the switch's port to the host is paused; by default from the start."""
    until_ns: Annotated[float | None, Field(ge=0, le=LATEST_NS), ON_VIRTUAL_LINKS] = None
    """The time until which it is paused; by default to the end."""

    @model_validator(mode="after")
    def _lasts(self) -> "Storm":
        if self.until_ns is not None and self.until_ns <= self.at_ns:
            raise ValueError(
                f"{self.host} pauses its link until {self.until_ns:g} ns, but only from"
                f" {self.at_ns:g} ns on"
            )

        return self


class Failures(Section):
    """Failed links: drawn at a rate, named, or both; links that lose packets; and slow links.

    `convergence_rtt` is G in zero-load RTTs (`inf`: routes never change).
    """

    rate: Annotated[float, Field(ge=0, le=1)] = 0
    """The probability that a link between switches has failed, drawn for each seed."""
    at_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] = 0
    """The time at which the drawn links fail."""
    events: tuple[FailureEvent, ...] = ()
    losses: tuple[Loss, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    storms: tuple[Storm, ...] = ()
    """Hosts that pause their links without an end, as broken NICs do (with
    `fabric.flow_control = "pfc"`).
    """
    convergence_rtt: Annotated[float, Field(ge=0, allow_inf_nan=True)] = 0
    """G: the time from a change (or its detection) to new routes; `inf`: routes never change."""
    local_repair: Annotated[bool, only_on("virtual", "sim")] = False
    """Whether switches stop using their own failed links at once."""

    @field_validator("convergence_rtt")
    @classmethod
    def _finite_or_never(cls, rtts: float) -> float:
        if not (rtts <= MOST_RTTS or rtts == float("inf")):
            raise ValueError(f"must be from 0 to {MOST_RTTS:,}, or inf for never")

        return rtts


class Controller(Section):
    """The detection of failures by the controller, its weights, and links that come and go.

    G (`failures.convergence_rtt`) starts when the controller learns of a change: with `announced`
    at the change itself.
    """

    detection: Detection = "announced"
    """How failures are detected: announced at once, by the kernel's link events (`mininet` only),
    or by probes.
    """
    probe_interval_us: Annotated[float | None, Field(ge=0.001, le=10**9)] = None
    """The time between two probes of a link; by default the fabric's round trip."""
    probe_misses: Annotated[int | None, Field(ge=1, le=1_000)] = None
    """The number of missing probes in a row after which a link counts as failed."""
    kind: Annotated[Kind, only_on("mininet")] = "central"
    """The source of schedules: one controller that knows the whole fabric (`central`), or each
    switch's own routes, which BGP (FRR) brings to it (`bgp`).
    """
    weights: Weights = "exact"
    """The weights of uplinks, for load balancers that weigh them: the paper's W-ECMP (`exact`), or
    those that BGP gives, in whole percents and without slow links (`bgp`).
    """
    spread_rtt: Annotated[tuple[Lag, ...], Field(max_length=MOST_LAGS)] = ()
    """How much later than G switches change their routes, in round trips: each switch draws one of
    these lags for the whole run. By default all change at one instant.
    """
    damping_half_life_us: Annotated[float | None, Field(ge=0.001, le=10**12)] = None
    """Flap damping: the time in which a link's penalty for flaps halves; by default no damping."""
    damping_suppress: Annotated[float | None, Field(gt=0, le=1_000)] = None
    """Flap damping: a link with a higher penalty is not used (3)."""
    damping_reuse: Annotated[float | None, Field(gt=0, le=1_000)] = None
    """Flap damping: a link with a lower penalty is used again (1)."""

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

        if self.kind == "bgp":
            self._refuse_beside_bgp()

        suppress = self.damping_suppress or DAMPING_SUPPRESS
        reuse = self.damping_reuse or DAMPING_REUSE
        if reuse >= suppress:
            raise ValueError(
                f"damping_reuse = {reuse:g} must be below damping_suppress = {suppress:g}"
            )

        return self

    def _refuse_beside_bgp(self) -> None:
        """Raise ValueError for a setting of the central controller."""
        if self.detection != "announced":
            raise ValueError(f'BGP detects failures itself: no detection = "{self.detection}"')

        if self.damping_half_life_us is not None:
            raise ValueError('damping_half_life_us needs kind = "central"')

        if self.spread_rtt:
            raise ValueError("BGP's routers have their own times: leave spread_rtt out")

        if self.weights != "exact":
            raise ValueError('kind = "bgp" has the weights of BGP: leave weights out')
