"""Max queue and CCT against message size: three groups of schemes (section 6, theorems 1 to 3)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.fabric import DEFAULT_QUEUE_BYTES
from fattree.experiment.model import Scenario
from reproduction.report import schemes, style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, slug
from reproduction.report.looks import Needs
from reproduction.report.schemes import MIB, MODELLED, mean_of, not_so, where
from reproduction.report.statistics import Estimate, estimate, every, exponent, rank_correlation

# As section 6.2 clusters them. Switch Pkt is drawn but in no group: the text does not place it.
# Simple RR with a shared pointer is drawn, too: theory knows one class of packets.
GROUPS = {
    "linear": ("simple_rr", "jsq"),
    "square root": ("rsq", "host_pkt", "host_pkt_ar", "switch_pkt_ar"),
    "constant": ("host_dr", "ofan"),
}
PAYLOAD = 4096
PACKETS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
# Hosts send data only up to packet 78 (appendix B): theory without ACKs holds there, and a law may
# have another exponent beyond.
MODE_1 = (8, 64)
BEYOND = (128, 4096)
# Beyond mode 1 queues first stay on a level, which only the last doubling is past.
LAST_STEPS = 1
SHARED = "simple_rr_shared"
WHERE = {"mode 1": "in mode 1", "beyond": "beyond mode 1"}
# "Near-linear" and "correlates well", by margins of ours.
LINEAR = 0.8
CORRELATED = 0.9
LIMITED = "800 KB buffers"
UNLIMITED = "unlimited buffers"
LARGE = "65,536 hosts"
NO_ACKS = "ACKs of 1 B without gaps"
# Of the three panels.
QUANTITIES = (
    "CCT increase over the bound (%)",
    "max queue (packets), 800 KB buffers",
    "max queue (packets), unlimited buffers",
)


def scenarios(preset: Preset) -> list[Scenario]:
    """Return message sizes with the default buffers (drawn) and unlimited ones (fitted).

    Some points with 65,536 hosts.
    """
    sizes = tuple(
        PAYLOAD * packets for packets in PACKETS if packets <= preset.pick(1024, 2048, 4096)
    )
    # 800 KB cut queues off, which would flatten every exponent. Thresholds stay those of 800 KB:
    # shares of an unlimited buffer would be no thresholds at all.
    limitless = {"fabric__queue_bytes": 0, "fabric__threshold_bytes": DEFAULT_QUEUE_BYTES}
    seeds = preset.seeds()
    runs = [
        *grid(
            {"name": LIMITED, **schemes.PERMUTATION},
            MODELLED,
            seeds,
            collective__message_bytes=sizes,
        ),
        *grid(
            {"name": UNLIMITED, **schemes.PERMUTATION, **limitless},
            MODELLED,
            seeds,
            collective__message_bytes=sizes,
        ),
    ]

    # The theory knows no ACKs. As small as they can be, they show whether ACKs break the linear
    # growth beyond mode 1.
    beyond = tuple(size for size in sizes if size >= BEYOND[0] * PAYLOAD)
    tiny = {"packets__ack_bytes": 1, "packets__gap_bytes": 0}
    base = {"name": NO_ACKS, **schemes.PERMUTATION, **limitless, **tiny}
    runs += grid(base, GROUPS["linear"], preset.seeds(2, 5, 5), collective__message_bytes=beyond)

    # A scheme or two of each group, at the size of section 7's example.
    if preset.level == "full":
        base = {"name": LARGE, **schemes.PERMUTATION, **limitless, "fabric__k": 64}
        runs += grid(
            base,
            ("jsq", "rsq", "host_dr", "ofan"),
            preset.seeds(1, 1, 2),
            collective__message_bytes=(64 * PAYLOAD, MIB),
        )

    return runs


def draw(data: Data) -> dict[str, Any]:
    """Draw CCT increase and max queue over the message size, with and without limits."""
    limited, unlimited, large = (data.named(name) for name in (LIMITED, UNLIMITED, LARGE))
    picture, row = style.panel(2.9, 3.5, columns=3)
    _lines(row[0], limited, "sending_increase", scale=100)
    _lines(row[1], limited, "max_queue_packets")
    _lines(row[2], unlimited, "max_queue_packets")
    # Above each panel, where no label stands in the gutter beside another panel.
    for axes, quantity in zip(row, QUANTITIES, strict=True):
        axes.set_title(quantity, loc="left", fontsize=8)

    without = sized(data.named(NO_ACKS))

    for policy in GROUPS["linear"]:
        points = style.estimates(where(without, policy=policy), "max_queue_packets", "size")
        style.line(row[2], policy, points, linestyle=":", markerfacecolor="white")

    # One scale for both pictures of queues: the part that 800 KB cut off is seen at a glance.
    row[1].set_ylim(row[2].get_ylim())
    for axes in row[1:]:
        style.buffer_line(axes)

    row[2].text(0.03, 0.97, "dotted: ACKs of 1 B", transform=row[2].transAxes, va="top", fontsize=7)
    style.legend_above(picture, row[0], columns=5)
    return {"": picture} | ({LARGE: _large(large)} if len(large) else {})


def sized(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `size`, the message in packets."""
    return frame.with_columns((pl.col("message_bytes") // PAYLOAD).alias("size"))


def _large(frame: pl.DataFrame) -> Any:
    picture, axes = style.panel(3.6, 3.2)
    _lines(axes, frame, "max_queue_packets")
    axes.set_ylabel("max queue (packets), unlimited buffers")
    style.buffer_line(axes)
    axes.legend()

    return picture


def _lines(axes: Any, frame: pl.DataFrame, column: str, scale: float = 1) -> None:
    rows = sized(frame)
    style.lines(axes, frame=rows, x="size", y=column, policies=MODELLED, scale=scale)
    sizes = sorted(rows["size"].unique())
    style.powers_of_two(axes, sizes[::2] if len(sizes) > 3 else sizes)
    style.plain_log(axes, (1, 10, 100, 1000))
    axes.set_xlabel("message (packets of 4 KB)")
    axes.grid(True, axis="x")


def claims(data: Data) -> list[Verdict]:
    """Decide C08."""
    frame = sized(data.named(UNLIMITED))
    fits = {"mode 1": exponents(frame, *MODE_1), "beyond": exponents(frame, *BEYOND)}
    last = {"mode 1": fits["mode 1"], "beyond": last_steps(frame)}
    together = correlation(data.named(LIMITED))
    checks, checks_of_last = (_checks(regimes, together) for regimes in (fits, last))

    return [
        Verdict(
            "C08",
            verdict=decide(list(checks.values())),
            ours=(
                f"exponents for 8 to 64 packets: {_exponents(fits['mode 1'])}; for 128 and more: "
                f"{_exponents(fits['beyond'])}; rank correlation of mean "
                f"CCT increase and max queue {together:.3f} ({schemes.seeds_of(frame)} seeds)"
            ),
            paper="near linear, closer to a square root, constant",
            why=not_so(checks, WHY),
            evidence=(
                f"exponents of every doubling: {_all_steps(frame)}; over 128 packets and more "
                f"with ACKs of 1 B and no gaps: {_without_acks(data)}; max queue in packets at the "
                f"longest message: {_longest(frame)}"
            ),
            seeds=schemes.seeds_of(frame),
            needs=_undecided(checks),
        ),
        Verdict(
            "C08",
            verdict=decide(list(checks_of_last.values())),
            ours=f"exponents over the last doubling: {_exponents(last['beyond'])}",
            why=not_so(checks_of_last),
            criterion=(
                "as above, beyond mode 1 over the last doubling alone (set after the first data: "
                "queues stay on a level before they grow)"
            ),
            seeds=schemes.seeds_of(frame),
            needs=_undecided(checks_of_last),
        ),
    ]


LINEAR_IN_MODE_1 = "Simple RR and JSQ grow faster than the 0.8th power in mode 1"


def _checks(fits: Mapping[str, Mapping[str, Estimate]], together: float) -> dict[str, bool | None]:
    """Return the parts of C08."""
    margin = CLAIMS["C08"].margin
    checks = {
        f"the groups are apart and in order {WHERE[regime]}": in_order(estimates)
        for regime, estimates in fits.items()
    }
    return checks | {
        LINEAR_IN_MODE_1: every(
            fits["mode 1"][policy].above(LINEAR, margin) for policy in GROUPS["linear"]
        ),
        "CCT follows the max queue": together > CORRELATED,
    }


def _undecided(checks: Mapping[str, bool | None]) -> Needs:
    """Return the predicate for the messages that undecided checks are about."""
    is_beyond = checks[f"the groups are apart and in order {WHERE['beyond']}"] is None
    least, largest = BEYOND if is_beyond else MODE_1
    return lambda scenario: (
        scenario.name == slug(UNLIMITED)
        and least <= scenario.collective.message_bytes // PAYLOAD <= largest
    )


WHY = (
    "From 78 packets on ACKs come back and hosts interleave them with data: up to 512 packets the "
    "queues of Simple RR and JSQ grow ever slower, then faster again with every doubling. A line "
    "over the plateau and the growth has neither's exponent: steps tell them apart. Host Pkt AR "
    "freezes beyond 4 MB (see message size) and leaves its group."
)


def steps(frame: pl.DataFrame, policy: str) -> dict[int, Estimate]:
    """Return the exponent of every doubling of the message, by the size that it leads to.

    log2 of the ratio of the mean max queues, with the interval over seeds.
    """
    sizes = sorted(frame["size"].unique())
    queues = {
        size: schemes.of_policy(where(frame, size=size), policy, "max_queue_packets")
        for size in sizes
    }

    return {after: _step(queues[before], queues[after]) for before, after in pairwise(sizes)}


def last_steps(frame: pl.DataFrame) -> dict[str, Estimate]:
    """Return the schemes' exponents over the last LAST_STEPS doublings."""
    sizes = sorted(frame["size"].unique())
    first, last = sizes[-1 - LAST_STEPS], sizes[-1]
    last_exponents = {}
    for policy in MODELLED:
        before, after = (
            schemes.of_policy(where(frame, size=size), policy, "max_queue_packets")
            for size in (first, last)
        )
        last_exponents[policy] = _step(before, after, LAST_STEPS)

    return last_exponents


def _step(before: Any, after: Any, doublings: int = 1) -> Estimate:
    # The seeds that both have: some sizes may have been given more.
    both = min(len(before), len(after))
    return estimate(np.log2(after[:both] / before[:both]) / doublings)


def _all_steps(frame: pl.DataFrame) -> str:
    return "; ".join(
        f"{style.label(policy)} "
        + ", ".join(f"{step.mean:.2f} (to {size})" for size, step in steps(frame, policy).items())
        for policy in (*GROUPS["linear"], SHARED)
    )


def exponents(frame: pl.DataFrame, least: int, most: int) -> dict[str, Estimate]:
    """Return exponents of the schemes' max queues over messages of `least` to `most` packets."""
    # All runs in one fit, not means: the interval then has the spread over seeds in it.
    rows = frame.filter(pl.col("size").is_between(least, most))
    fits = {}
    for policy in MODELLED:
        scheme_rows = where(rows, policy=policy)
        fits[policy] = exponent(
            scheme_rows["size"].to_numpy(), scheme_rows["max_queue_packets"].to_numpy()
        )

    return fits


def in_order(fits: Mapping[str, Estimate]) -> bool | None:
    """Return whether the groups' intervals are apart, and linear above root above constant.

    Not so if an exponent is shown to be above that of a higher group, or below it by less than the
    margin; None where that is not decided.
    """
    linear, root, constant = ([fits[policy] for policy in group] for group in GROUPS.values())
    return every([_above(linear, root), _above(root, constant)])


def _above(high: Sequence[Estimate], low: Sequence[Estimate]) -> bool | None:
    if min(fit.low for fit in high) > max(fit.high for fit in low):
        return True

    reach = min(fit.high for fit in high) - max(fit.low for fit in low)
    return False if reach < CLAIMS["C08"].margin else None


def correlation(frame: pl.DataFrame) -> float:
    """Return the rank correlation of schemes' mean CCT increase and max queue, over all sizes."""
    # Size by size: over all sizes together both grow with the message, and would correlate anyway.
    sizes = sorted(frame["message_bytes"].unique())
    correlations = []
    for size in sizes:
        rows = where(frame, message_bytes=size)
        increases, queues = (
            [mean_of(rows, policy, column).mean for policy in MODELLED]
            for column in ("sending_increase", "max_queue_packets")
        )

        correlations.append(rank_correlation(increases, queues))

    return sum(correlations) / len(correlations)


def _without_acks(data: Data) -> str:
    rows = data.named(NO_ACKS)
    fits = []
    for policy in GROUPS["linear"]:
        scheme_rows = where(rows, policy=policy)
        fit = exponent(
            scheme_rows["message_bytes"].to_numpy(), scheme_rows["max_queue_packets"].to_numpy()
        )
        fits.append(f"{style.label(policy)} {fit:.2f}")

    return ", ".join(fits)


def _exponents(fits: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{style.label(policy)} {fits[policy]:.2f}" for policy in MODELLED)


def _longest(frame: pl.DataFrame) -> str:
    rows = where(frame, size=frame["size"].max())
    return ", ".join(
        f"{style.label(policy)} {mean_of(rows, policy, 'max_queue_packets').mean:.0f}"
        for policy in MODELLED
    )


FIGURE = Figure(
    name="growth",
    title="How queues grow with the message",
    paper="Figure 6 (growth), section 6.2",
    caption=(
        "Permutation on 128 hosts. In mode 1 (messages below 78 packets) hosts send only data; "
        "longer messages share links with ACKs. Dotted: ACKs of 1 B without gaps."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
