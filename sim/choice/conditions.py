"""Conditions of the fabric under which each candidate runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fattree.experiment.failures import Degraded, FailureEvent, Failures
from fattree.experiment.model import Settings

# A link with one lane left, of two.
SLOW_SHARE = 0.5
# A failure in the middle of the collective, and how long routes go on using the failed link.
FAILS_NS = 5_000
LATE_RTT = 2
# A real reboot takes minutes; here the switch is away for most of a collective of 20 to 50 us.
AWAY_NS = 30_000
REBOOT_RTT = 2
# Each packet is late by up to so much of the gap between packets, as in the paper. More would slow
# hosts down by itself, and hide the effect of load balancers.
JITTER = 0.1
NEVER = float("inf")
LINK = "edge0_0-agg0_0"
SWITCH = "agg0_0"


@dataclass(frozen=True, slots=True)
class Condition:
    """A state of the fabric: its name on the command line, in a picture, and in a sentence."""

    name: str
    heading: str
    sentence: str
    apply: Callable[[Settings], Settings]


def _failing(failures: Failures) -> Callable[[Settings], Settings]:
    return lambda settings: settings.model_copy(update={"failures": failures})


def _jittering(settings: Settings) -> Settings:
    transport = settings.transport.model_copy(update={"pacing_jitter": JITTER})
    return _whole(settings).model_copy(update={"transport": transport})


def _whole(settings: Settings) -> Settings:
    return settings.model_copy(update={"failures": Failures()})


def _link(settings: Settings) -> str:
    # Of parallel links, the first.
    return f"{LINK}/0" if settings.fabric.tree.parallel_links(0) > 1 else LINK


def _failed(down_ns: float, rtts: float) -> Callable[[Settings], Settings]:
    def apply(settings: Settings) -> Settings:
        event = FailureEvent(link=_link(settings), down_ns=down_ns)
        return _failing(Failures(events=(event,), convergence_rtt=rtts))(settings)

    return apply


def _slow(rtts: float) -> Callable[[Settings], Settings]:
    def apply(settings: Settings) -> Settings:
        slow = Degraded(link=_link(settings), rate=SLOW_SHARE)
        return _failing(Failures(degraded=(slow,), convergence_rtt=rtts))(settings)

    return apply


_REBOOT = Failures(
    events=(FailureEvent(switch=SWITCH, down_ns=FAILS_NS, up_ns=FAILS_NS + AWAY_NS),),
    convergence_rtt=REBOOT_RTT,
)

_ROWS = (
    Condition("up", "all links\nup", "all links are up", _whole),
    Condition(
        "failed", "link failed,\nknown", "a link has failed, and routes avoid it", _failed(0, 0)
    ),
    Condition(
        "failing",
        "link failed,\nnot yet\nknown",
        f"a link fails, and routes go on using it for {LATE_RTT} round trips",
        _failed(FAILS_NS, LATE_RTT),
    ),
    Condition(
        "slow",
        "slow link,\nknown",
        "a link has half of its rate, and routes give it half of the weight",
        _slow(0),
    ),
    Condition(
        "slow-unknown",
        "slow link,\nnot known",
        "a link has half of its rate, and routes do not know it",
        _slow(NEVER),
    ),
    Condition(
        "reboot",
        "switch\nreboots",
        f"a switch above the leaves is away for {AWAY_NS // 1000} us, and routes follow after"
        f" {REBOOT_RTT} round trips",
        _failing(_REBOOT),
    ),
    Condition(
        "jitter",
        "hosts\njitter",
        "hosts send each packet up to a tenth of a gap late, at random",
        _jittering,
    ),
)
CONDITIONS: Mapping[str, Condition] = {row.name: row for row in _ROWS}
# The failures that an experiment file has of its own.
OWN = Condition(
    "file",
    "as in\nthe file",
    "the failures of the experiment file",
    lambda settings: settings,
)


def conditions_of(settings: Settings, without: Sequence[str] = ()) -> dict[str, Condition]:
    """Return the conditions that a fabric can be in, by name, without those that are left out."""
    configured = {OWN.name: OWN} if settings.failures != Failures() else {}
    every_condition = {**configured, **CONDITIONS}
    return {name: row for name, row in every_condition.items() if name not in without}


def weight_of(name: str, weights: Mapping[str, float]) -> float:
    """Return how much a condition's time above the bound counts."""
    return weights.get(name, 1.0)


def as_keys(condition: Condition, settings: Settings) -> dict[str, Any]:
    """Return the settings of a condition, for the answer's JSON."""
    applied = condition.apply(settings)
    return {
        "failures": applied.failures.model_dump(mode="json", exclude_defaults=True),
        "pacing_jitter": applied.transport.pacing_jitter,
    }
