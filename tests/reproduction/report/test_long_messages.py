"""C28 in its three forms: the cost of a late change of routes, on both sides of each line."""

import polars as pl
import pytest

from reproduction.figures import long_messages
from reproduction.figures.convergence import ATA, LARGE
from reproduction.report.figure import FAILS, FEW, HOLDS, Data, Outcome, Preset, slug
from reproduction.report.statistics import Estimate
from tests.reproduction.report.made_up import exactly, runs

UNSEEING = long_messages.UNSEEING


def collective(more: float = 0.0, wobble: float = 1e-4, spread: float = 0.01) -> pl.DataFrame:
    """Return runs of all schemes: G = 20 costs 2 %, and so much more; seeds are far apart."""
    frames = []
    for delay in (0.0, 10.0, 20.0):
        cost = 0.02 * delay / 20 + (more if delay == 20 else 0)
        # Half of the seeds pay twice as much for failures, whatever the collective.
        increases = [
            (1 + cost + (spread * (seed % 2) + wobble * (seed % 5)) * delay / 20) - 1
            for seed in range(10)
        ]
        frames.append(runs(dict.fromkeys(UNSEEING, increases), convergence_rtt=delay))

    return pl.concat(frames)


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        (0.0, HOLDS),
        (0.002, HOLDS),
        (-0.002, HOLDS),
        (-0.008, HOLDS),
        (0.008, FAILS),
    ],
)
def test_a_delay_costs_no_more_than_it_costs_the_all_to_all(more: float, outcome: Outcome) -> None:
    judgement = long_messages.as_long(collective(more), collective(wobble=2e-4))
    assert (judgement.verdict, judgement.criterion) == (outcome, "")


def test_costs_are_compared_seed_by_seed() -> None:
    # Between seeds costs differ by a point, which one failure makes in both collectives.
    assert long_messages.as_long(collective(), collective(wobble=2e-4)).verdict == HOLDS
    unlike = collective().with_columns(seed=9 - pl.col("seed"))
    assert long_messages.as_long(unlike, collective()).verdict == FEW


def test_only_what_is_open_needs_more_seeds() -> None:
    unlike = collective().with_columns(seed=9 - pl.col("seed"))
    needs = long_messages.as_long(unlike, collective()).needs
    in_need = {
        (scenario.name, scenario.failures.convergence_rtt)
        for scenario in long_messages.scenarios(Preset("default"))
        if needs(scenario)
    }
    both = (slug(long_messages.LONG), slug(ATA))
    assert in_need == {(name, delay) for name in both for delay in (0, 10, 20)}


@pytest.mark.parametrize("level", ["quick", "default", "full"])
def test_hosts_send_as_much_as_in_the_all_to_all(level: str) -> None:
    scenarios = long_messages.scenarios(Preset(level))  # type: ignore[arg-type]
    sent: dict[str, set[tuple[int, int]]] = {}
    for scenario in scenarios:
        receivers = scenario.tree.hosts - 1 if scenario.collective.matrix == "all_to_all" else 1
        total = receivers * int(scenario.collective.message_bytes)
        sent.setdefault(scenario.name, set()).add((scenario.fabric.k, total))

    assert sent[slug(long_messages.LONG)] == sent[slug(ATA)]


def test_both_earlier_forms_are_shown_and_do_not_count() -> None:
    frame = pl.concat(
        [collective().with_columns(name=pl.lit(slug(name))) for name in (ATA, long_messages.LONG)]
        + [
            runs(
                dict.fromkeys(UNSEEING, [0.01 * delay] * 10), convergence_rtt=float(delay)
            ).with_columns(name=pl.lit(slug(LARGE)))
            for delay in (0, 2, 5, 10)
        ],
        how="diagonal_relaxed",
    )
    data = Data(Preset("default"), (), ())
    data.__dict__["frame"] = frame
    verdicts = long_messages.claims(data)
    assert [bool(verdict.criterion) for verdict in verdicts] == [False, True, True]


@pytest.mark.parametrize(
    ("large", "outcome"),
    [
        (exactly(0.03, 0.01), HOLDS),
        (exactly(0.06, 0.01), FAILS),
        (exactly(0.03, 0.03), FEW),
    ],
)
def test_c28_half_a_delay_costs_large_messages_as_little(large: Estimate, outcome: Outcome) -> None:
    # It may cost 2 points more. There is no half of 20 here, and no all-to-all for 2.
    of_large = {("host_pkt", 5.0): large, ("host_pkt", 2.0): exactly(9)}
    ata = {("host_pkt", 10.0): exactly(0.02), ("host_pkt", 20.0): exactly(0)}

    assert long_messages.large_messages(of_large, ata).verdict == outcome


def test_c28_one_scheme_that_fails_decides() -> None:
    of_large = {("host_pkt", 5.0): exactly(0.06), ("switch_pkt", 5.0): exactly(0.0, 0.5)}
    ata = dict.fromkeys([("host_pkt", 10.0), ("switch_pkt", 10.0)], exactly(0.02))

    assert long_messages.large_messages(of_large, ata).verdict == FAILS


def test_c28_what_a_delay_costs_is_against_the_scheme_without() -> None:
    frame = pl.concat(
        [
            runs({"host_pkt": (0.0, 0.0, 0.0)}, convergence_rtt=0.0),
            runs({"host_pkt": (0.01, 0.01, 0.01)}, convergence_rtt=10.0),
            runs({"host_pkt": (0.5, 0.5, 0.5)}, convergence_rtt=200.0),
        ]
    )
    costs = long_messages.costs(frame)

    assert list(costs) == [("host_pkt", 10.0)]
    assert costs["host_pkt", 10.0].mean == pytest.approx(0.01)
