"""The ranking in two sentences, and the changes that would turn it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf
from statistics import fmean

from sim.choice.candidates import BASE, NO_STATE, Candidate, needs
from sim.choice.conditions import Condition
from sim.choice.ranking import Standing, Times, Verdict, leaders, ranked

MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Ground:
    """Grounds of advice: candidates, conditions, times, weights and the margin.

    `far` are the candidates that have one seed only, far behind the third.
    """

    candidates: Mapping[str, Candidate]
    conditions: Mapping[str, Condition]
    times: Times
    weights: Mapping[str, float]
    margin: float
    far: frozenset[str] = frozenset()

    def label(self, name: str) -> str:
        """Return a candidate's name for people."""
        return self.candidates[name].label

    def places(self) -> list[Standing]:
        """Return the ranking."""
        return ranked(self.times, self.weights, self.margin)

    def first(self) -> list[str]:
        """Return the first candidate, and all that it is not shown to be ahead of."""
        return leaders(self.times, self.weights, self.margin, self.far)

    def beside_first(self, name: str) -> Verdict | None:
        """Return how the first stands beside another candidate."""
        pair = self.among([self.places()[0].name, name]).places()
        return pair[0].verdict

    def within(self, conditions: Sequence[str]) -> "Ground":
        """Return the same with these conditions only, for all candidates that have more seeds."""
        times = {
            name: {
                condition: by_condition[condition]
                for condition in conditions
                if condition in by_condition
            }
            for name, by_condition in self.times.items()
        }
        return replace(self, times=times)

    def among(self, names: Sequence[str]) -> "Ground":
        """Return the same with these candidates only."""
        return replace(self, times={name: self.times[name] for name in names})


def advice(ground: Ground) -> str:
    """Return two sentences: the load balancer to run, and the reason."""
    return f"{_choice(ground)} {_reason(ground)}"


def _choice(ground: Ground) -> str:
    top, *behind = ground.places()
    label = ground.label(top.name)
    at_worst = (
        f"at worst it ends {over(top.worst.mean)} over the bound"
        f" ({ground.conditions[top.condition].sentence})"
    )
    if not behind:
        return f"{label} is the only load balancer that fits: {at_worst}."

    rivals = ground.first()[1:]
    if not rivals:
        after = behind[0]
        return (
            f"Run {label}: {at_worst}, {ground.label(after.name)} as the next one"
            f" {over(after.worst.mean)}."
        )

    shown = ", ".join(ground.label(name) for name in rivals[:MOST_NAMED])
    more = f" and {len(rivals) - MOST_NAMED} more" if len(rivals) > MOST_NAMED else ""
    is_known = all(ground.beside_first(rival) is Verdict.LEVEL for rival in rivals)
    standing = (
        f"level with it, no difference above {ground.margin:g} points: {shown}{more}"
        if is_known
        else f"the seeds so far do not tell it apart from {shown}{more}"
    )
    return (
        f"No load balancer is shown to be better than all others by {ground.margin:g} points:"
        f" {label} is first, {at_worst}; {standing}."
    )


def _reason(ground: Ground) -> str:
    top = ground.places()[0]
    row = ground.candidates[top.name]
    required = needs(row)
    if row.is_own:
        kept = "it is yours"
    elif required.switch_state != NO_STATE:
        kept = f"its switches keep {required.switch_state}"
    elif required.host_state != NO_STATE:
        kept = f"its hosts keep {required.host_state}"
    else:
        kept = "no switch or host keeps state for it"

    rule = "" if row.is_own else f" {row.row.rule.rstrip('.')}, and"
    times = ground.times[top.name]
    best = min(times, key=lambda condition: fmean(times[condition]))
    best_time = f"{over(fmean(times[best]))} over the bound if {ground.conditions[best].sentence}"
    return f"The reason:{rule} it ends {best_time}; {kept}."


def over(percent: float) -> str:
    """Return a share over the bound for people."""
    return "never" if isinf(percent) else f"{percent:.1f} %"


def changes(ground: Ground) -> list[str]:
    """Return a line for each condition left out, or alone, and each limit that turns the order."""
    before = frozenset(ground.first())
    lines = [*_without(ground, before), *_alone(ground, before), *_limited(ground, before)]
    top = ground.label(ground.places()[0].name)
    return lines or [
        "Nothing is shown to: with each condition alone, or without it, these runs leave"
        f" {top} first, or level with the first. More runs may tell more apart (--minutes)."
    ]


def _without(ground: Ground, before: frozenset[str]) -> Iterator[str]:
    names = list(ground.conditions)
    for name in names if len(names) > 1 else ():
        rest = [kept for kept in names if kept != name]
        when = f"without this condition: {ground.conditions[name].sentence}"
        yield from _turned(ground.within(rest), before, when)


def _alone(ground: Ground, before: frozenset[str]) -> Iterator[str]:
    for name, condition in ground.conditions.items():
        yield from _turned(ground.within([name]), before, f"only where {condition.sentence}")


def _limited(ground: Ground, before: frozenset[str]) -> Iterator[str]:
    for devices, device in (("switches", "switch"), ("hosts", "host")):
        fitting = [
            name
            for name in ground.times
            if ground.candidates[name].row.where == device or ground.candidates[name].policy == BASE
        ]
        if 1 < len(fitting) < len(ground.times):
            when = f"where only {devices} may be changed"
            yield from _turned(ground.among(fitting), before, when)


def _turned(ground: Ground, before: frozenset[str], when: str) -> Iterator[str]:
    """Yield a line if none of those that were first is first, or level with the first."""
    after = ground.first()
    if before.intersection(after):
        return

    first = ground.places()[0]
    level = f", level with {len(after) - 1} more" if len(after) > 1 else ""
    yield f"{when}: {ground.label(first.name)} ({over(first.worst.mean)}{level})"
