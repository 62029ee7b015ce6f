"""Effects of the model's free choices: one scheme with each choice both ways."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from reproduction.report import schemes, style
from reproduction.report.figure import Data, Figure, Preset, grid, variant_of
from reproduction.report.schemes import FAILED_LINKS, MIB, NEVER, PERMUTATION, percent
from reproduction.report.statistics import Estimate, estimate, paired

PACKET_BYTES = 4096 + 62
BROKEN = {"failures__rate": FAILED_LINKS, "failures__convergence_rtt": NEVER}
LARGE: dict[str, Any] = {"collective__message_bytes": 4 * MIB}
# Longer than 100 us, so that a flow can freeze and go on.
HUGE: dict[str, Any] = {"collective__message_bytes": 16 * MIB}
SHORT = {"fabric__queue_bytes": 20 * PACKET_BYTES}


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of the model, ours and the other, and the schemes and permutation that it affects.

    The values are printed for readers; `ours` and `other` are the settings behind them.
    """

    text: str
    values: tuple[str, str]
    policies: tuple[str, ...]
    ours: dict[str, Any]
    other: dict[str, Any]
    where: str = "1 MB"
    settings: Mapping[str, Any] = field(default_factory=dict)


def _option(
    text: str,
    key: str,
    values: tuple[Any, Any],
    policies: tuple[str, ...],
    unit: str = "",
    where: str = "1 MB",
    settings: Mapping[str, Any] | None = None,
) -> Choice:
    ours, alternative = values
    said = (f"{ours}{unit}", f"{alternative}{unit}")
    return Choice(text, said, policies, {key: ours}, {key: alternative}, where, settings or {})


CHOICES = (
    _option(
        "round robin: pointer of data and ACKs",
        "load_balancer__rr_pointer",
        ("per_class", "shared"),
        ("simple_rr",),
    ),
    _option(
        "a packet times out no sooner than",
        "transport__timer_floor_rtt",
        (3, 1),
        ("host_pkt_ar",),
        " RTT",
        "4 MB",
        LARGE,
    ),
    _option(
        "REPS: how long it freezes",
        "load_balancer__freeze_us",
        (10_000, 100),
        ("host_pkt_ar",),
        " µs",
        "16 MB, 1 % failed links, G = ∞",
        HUGE | BROKEN,
    ),
    _option(
        "REPS: packets that explore",
        "load_balancer__reps_explore_packets",
        (16, 150),
        ("host_pkt_ar",),
    ),
    _option(
        "REPS: packets that explore",
        "load_balancer__reps_explore_packets",
        (16, 150),
        ("host_pkt_ar",),
        where="1 MB, 1 % failed links, G = ∞",
        settings=BROKEN,
    ),
    _option(
        "age of queue readings, at most",
        "load_balancer__queue_staleness_ns",
        (0, 100),
        ("switch_pkt_ar", "jsq"),
        " ns",
    ),
    _option(
        "age of queue readings, at most",
        "load_balancer__queue_staleness_ns",
        (0, 100),
        ("switch_pkt_ar", "jsq"),
        " ns",
        "1 MB, buffers of 20 packets",
        SHORT,
    ),
    Choice(
        "where in a gap a flow begins",
        ("at random", "all at once"),
        ("ofan", "host_dr", "jsq"),
        {"transport__random_phases": True},
        {"transport__random_phases": False},
    ),
    _option(
        "Ofan: orders of schedules",
        "load_balancer__schedule_orders",
        ("per_pod", "per_pointer"),
        ("ofan",),
    ),
    _option(
        "REPS: ECN threshold",
        "load_balancer__ecn_percent",
        (10, 20),
        ("host_pkt_ar",),
        " % of the buffer",
        "4 MB",
        LARGE,
    ),
    Choice(
        "20 bytes of gap",
        ("outside of packets", "inside, in buffers too"),
        ("ofan", "switch_pkt_ar", "jsq"),
        {"packets__header_bytes": 62, "packets__gap_bytes": 20},
        {"packets__header_bytes": 82, "packets__gap_bytes": 0},
    ),
    _option(
        "pacing jitter, in gaps",
        "transport__pacing_jitter",
        (0, 0.1),
        ("ofan", "simple_rr", "jsq"),
    ),
)


def scenarios(preset: Preset) -> list[Scenario]:
    """Return every choice both ways, a permutation each."""
    return [
        scenario
        for number, choice in enumerate(CHOICES)
        for side, settings in (("ours", choice.ours), ("other", choice.other))
        for scenario in grid(
            {"name": f"{number}-{side}", **PERMUTATION, **choice.settings, **settings},
            choice.policies,
            preset.seeds(),
        )
    ]


def both(data: Data, number: int, policy: str) -> tuple[Any, Any]:
    """Return a scheme's increases with a choice as ours and the other way, by seed."""
    frames = (data.named(f"{number}-{side}") for side in ("ours", "other"))
    # The option may have made a variant of the scheme, which is a name of its own in frames.
    with_ours, with_other = (
        frame.filter(pl.col("policy").is_in(_names(policy))).sort("seed") for frame in frames
    )
    return with_ours["sending_increase"].to_numpy(), with_other["sending_increase"].to_numpy()


def _names(policy: str) -> list[str]:
    forms = [variant_of(scenario) for scenario in _scenarios_of(policy)]
    return list(dict.fromkeys([policy, *forms]))


def _scenarios_of(policy: str) -> list[Scenario]:
    options = [side for choice in CHOICES for side in (choice.ours, choice.other)]
    return [scenario for side in options for scenario in grid(side, (policy,), (1,))]


def rows(data: Data) -> list[tuple[Choice, str, Estimate, Estimate, Estimate]]:
    """Return each choice and scheme with its increase both ways and other - ours, paired."""
    compared = []
    for number, choice in enumerate(CHOICES):
        for policy in choice.policies:
            ours, alternative = both(data, number, policy)
            if len(ours) and len(alternative):
                compared.append(
                    (
                        choice,
                        policy,
                        estimate(ours),
                        estimate(alternative),
                        paired(alternative, ours),
                    )
                )

    return compared


def draw(data: Data) -> dict[str, Any]:
    """Draw how far each choice moves its scheme."""
    shown = rows(data)[::-1]
    picture, axes = style.panel(6.4, 0.26 * len(shown) + 0.6)
    for row, (_, policy, _, _, moved) in enumerate(shown):
        # Dots: on an axis that is partly logarithmic a bar's length means nothing.
        axes.errorbar(
            100 * moved.mean,
            row,
            xerr=100 * moved.whisker,
            fmt="o",
            color=style.colour(policy),
            markeredgecolor="#333333",
            markeredgewidth=0.5,
        )

    texts = [
        f"{choice.text}, {choice.where}: {style.label(policy)}" for choice, policy, *_ in shown
    ]
    axes.set_yticks(range(len(shown)), texts, fontsize=7)
    # Most choices move a point or less; some move fifty.
    axes.set_xscale("symlog", linthresh=1)
    ticks = (-50, -10, -1, 0, 1, 10, 50)
    axes.set_xticks(ticks, [str(tick).replace("-", "−") for tick in ticks])
    axes.minorticks_off()
    axes.axvline(0, color="#333333", linewidth=0.7)
    axes.grid(True, axis="x")
    axes.set_xlabel("other form - ours (points of CCT increase)")

    return {"": picture}


def table(data: Data) -> pl.DataFrame:
    """Return a row for each choice and scheme."""
    return pl.DataFrame(
        [
            {
                "choice": choice.text,
                "permutation of": choice.where,
                "scheme": style.label(policy),
                "ours": choice.values[0],
                "other": choice.values[1],
                "CCT increase, ours": percent(ours),
                "other way": percent(alternative),
                "difference": percent(moved),
                "differs": "yes" if moved.differs else "no",
                "seeds": schemes.seeds_of(data.frame),
            }
            for choice, policy, ours, alternative, moved in rows(data)
        ]
    )


FIGURE = Figure(
    name="choices",
    title="What the choices matter",
    paper="Beyond the paper",
    caption=(
        "Every choice that the paper's text leaves open, both ways: one that moves no scheme is"
        " robust. ACKs' start half a schedule behind data (Ofan), how often Switch Pkt takes a "
        "new order and where a queue's ECN is read (when a packet joins it) are fixed in the "
        "programs, when an erasure sender stops is the rule itself: they have no row. Exploring"
        " packets make no difference before the first ACK, when labels are random anyway, and "
        "after a freeze of 10 ms nothing is left to explore with."
    ),
    scenarios=scenarios,
    draw=draw,
    table=table,
)
