"""The load balancers and settings that figures share, and how rows become numbers per seed."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reproduction.report.claims import POINT
from reproduction.report.statistics import Estimate, estimate, every, paired
from reproduction.report.style import label

# Section 5's seven contenders: COARSE choose once for many packets, PACKET spray.
COARSE = ("flow", "subflow", "host_flowlet_ar")
PACKET = ("host_pkt", "switch_pkt", "host_pkt_ar", "switch_pkt_ar")
CONTENDERS = (*COARSE, *PACKET)
# Destination-based rotation, at hosts and in switches (sections 6.1 and 7).
ROTATION = ("host_dr", "ofan")
# The schemes of section 8: the best in practice and the best in theory.
BEST = ("switch_pkt_ar", "host_pkt_ar", "ofan")
# Figure "growth": the models of table 3 and the packet schemes that they simplify.
MODELLED = (
    "simple_rr",
    "simple_rr_shared",
    "jsq",
    "rsq",
    "host_pkt",
    "switch_pkt",
    "host_pkt_ar",
    "switch_pkt_ar",
    "host_dr",
    "ofan",
)
# The same with one round robin: Simple RR; Switch Pkt permutes its order now and then.
SPRAYING = tuple(policy for policy in MODELLED if policy != "switch_pkt")

KIB = 1 << 10
MIB = 1 << 20
# Section 5's other settings are the defaults (k = 8, 800 Gb/s, 800 KB buffers). It names no message
# size: 1 MiB is the 256 packets of appendix B's example, with the bound that it prints.
PERMUTATION = {"collective__matrix": "permutation", "collective__message_bytes": MIB}
INTER_POD = {"collective__matrix": "inter_pod_permutation", "collective__message_bytes": MIB}
ALL_TO_ALL = {"collective__matrix": "all_to_all", "collective__message_bytes": MIB}
# An all-to-all on 128 hosts costs a hundred permutations. On 54 hosts a message 2.4 times as long
# takes as many round trips (220) at less than half the cost, so that G means the same.
SMALLER = {"fabric__k": 6, "collective__message_bytes": 613 * 4096}
# Section 5.2's probability of an edge-aggregation or aggregation-core link.
FAILED_LINKS = 0.01
NEVER = float("inf")


def of_policy(frame: pl.DataFrame, policy: str, column: str = "sending_increase") -> NDArray[Any]:
    """Return a column's values of one load balancer in the order of the seeds."""
    return where(frame, policy=policy).sort("seed")[column].to_numpy()


def mean_of(frame: pl.DataFrame, policy: str, column: str = "sending_increase") -> Estimate:
    """Return a column's mean over the seeds of one load balancer."""
    return estimate(of_policy(frame, policy, column))


def difference(
    frame: pl.DataFrame, first: str, second: str, column: str = "sending_increase"
) -> Estimate:
    """Return first - second, paired by seed."""
    return paired_by_seed(where(frame, policy=first), where(frame, policy=second), column)


def paired_by_seed(
    first: pl.DataFrame, second: pl.DataFrame, column: str = "sending_increase"
) -> Estimate:
    """Return first - second over the seeds that both frames have."""
    # Interrupted reports may lack a seed of either frame.
    both = (
        first.select("seed", column)
        .join(second.select("seed", column), on="seed", suffix="_second")
        .sort("seed")
    )

    return paired(both[column], both[f"{column}_second"])


def seeds_below(
    first: pl.DataFrame, second: pl.DataFrame, column: str = "sending_increase"
) -> tuple[int, int]:
    """Return with how many seeds the first is below the second, and how many seeds both have."""
    both = first.select("seed", column).join(
        second.select("seed", column), on="seed", suffix="_second"
    )
    return int((both[column] < both[f"{column}_second"]).sum()), len(both)


def log_ratio(frame: pl.DataFrame, first: str, second: str) -> Estimate:
    """Return log2 of the completion time of first over that of second, paired by seed."""
    # Failures change the times of both by a factor: in logarithms it cancels, in differences not.
    times = [
        np.log2(of_policy(frame, policy, "sending_cct_ps").astype(float))
        for policy in (first, second)
    ]
    return paired(*times)


def below(
    frame: pl.DataFrame,
    first: str,
    second: str,
    column: str = "sending_increase",
    margin: float = POINT,
) -> bool | None:
    """Return whether the first's values are lower: on which side of 0 paired differences lie.

    They are not where they are shown to be higher, or lower by less than the margin. None where the
    interval does not decide.
    """
    return difference(frame, first, second, column).below(0, margin)


def lowest(
    frame: pl.DataFrame,
    first: str,
    rivals: Iterable[str],
    column: str = "sending_increase",
    margin: float = POINT,
) -> bool | None:
    """Return whether a load balancer is below each of the others."""
    return every(below(frame, first, rival, column, margin) for rival in rivals if rival != first)


def order(
    frame: pl.DataFrame, policies: Sequence[str], column: str = "sending_increase"
) -> tuple[str, ...]:
    """Return load balancers by their mean, the lowest first."""
    return tuple(sorted(policies, key=lambda policy: mean_of(frame, policy, column).mean))


def seeds_of(frame: pl.DataFrame) -> int:
    """Return how many seeds a frame has of the load balancer with the fewest."""
    seeds = frame.group_by("policy").agg(pl.col("seed").n_unique())["seed"]
    return int(seeds.min() or 0)  # type: ignore[arg-type]


def percent(value: Estimate, digits: int = 1) -> str:
    """Return a share as per cent with its interval."""
    half = "" if isnan(value.half) else f" ± {100 * value.half:.{digits}f}"
    return f"{100 * value.mean:.{digits}f}{half} %"


def versus(value: Estimate, margin: float, digits: int = 1) -> str:
    """Return a difference with its interval, and whether it is shown to be below a margin."""
    unit = "point" if margin == POINT else "points"
    shown = f" (no difference above {100 * margin:g} {unit})" if value.alike(margin) else ""
    return percent(value, digits) + ("" if value.differs else shown)


def listed(
    frame: pl.DataFrame,
    policies: Iterable[str],
    digits: int = 1,
    column: str = "sending_increase",
) -> str:
    """Return "label mean ± half %" of several load balancers, and the seeds."""
    parts = [
        f"{label(policy)} {percent(mean_of(frame, policy, column), digits)}" for policy in policies
    ]
    return f"{', '.join(parts)} ({seeds_of(frame)} seeds)"


def not_so(checks: Mapping[str, bool | None], reason: str = "") -> str:
    """Return which of several checks do not hold or are not decided, and why."""
    broken = [text for text, right in checks.items() if right is False]
    open_ = [text for text, right in checks.items() if right is None]
    parts = [f"Not so: {'; '.join(broken)}."] if broken else []
    parts += [f"Not decided: {'; '.join(open_)}."] if open_ else []

    return " ".join([*parts, *([reason] if reason and broken else [])])


def names(policies: Iterable[str]) -> str:
    """Return labels, separated by commas."""
    return ", ".join(map(label, policies))


def where(frame: pl.DataFrame, **values: Any) -> pl.DataFrame:
    """Return the rows with these values; `__` in a name stands for the dot."""
    for name, value in values.items():
        frame = frame.filter(pl.col(name.replace("__", ".")) == value)

    return frame


def spread(points: Iterable[float]) -> float:
    """Return the distance of the largest from the smallest."""
    values = np.asarray(list(points))
    return float(values.max() - values.min())
