"""The criteria of MRC (B22 to B30) as functions: cases on both sides of each line."""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl
import pytest

from fattree.experiment.model import Scenario
from fattree.routes.places import places
from reproduction.figures.beyond import mrc as figure
from reproduction.figures.beyond.fabrics import FABRICS, FAT_TREE, LEAF_SPINE, RAILS
from reproduction.report.figure import (
    FAILS,
    FEW,
    HOLDS,
    PARTLY,
    Data,
    Outcome,
    Preset,
    Verdict,
    slug,
)
from tests.reproduction.report.made_up import runs

# Ten seeds around a mean, with an interval 0.01 points wide.
WOBBLE = tuple(np.linspace(-1e-5, 1e-5, 10))
# The results of single runs, in per cent: every statement holds.
EXPECTED = {
    figure.WHOLE: {"host_dr": 0.6, "ofan": 0.4, "host_pkt": 5.0, "mrc": 12.0},
    figure.DEAD: {"ofan": 35.0, "mrc": 18.0},
    figure.FOLLOWED: {"ofan": 0.2, "mrc": 8.0},
    figure.DIES: {"ofan": 30.0, "mrc": 31.0},
    figure.SLOW: {"ofan": 140.0, "mrc": 90.0},
}
OWN = EXPECTED | {
    figure.WHOLE: {"ofan": 0.4, "mrc": 30.0},
    figure.DEAD: {"ofan": 300.0, "mrc": 100.0},
}
# Packets lost with 8 and 16 MiB.
LOST = {"host_pkt": (10_000, 20_000), "mrc": (2500, 4000)}
Changes = Mapping[tuple[str, str], Mapping[str, float]]


def data_of(changes: Changes, lost: Mapping[str, tuple[float, float]], wobble: float = 1.0) -> Data:
    """Return the runs of all fabrics, of which some parts have other means."""
    frames = []
    for transport, settings in ((figure.FIXED, EXPECTED), (figure.OWN, OWN)):
        for fabric in FABRICS:
            for setting, usual in settings.items():
                name = figure.part(fabric, setting, transport)
                means = {**dict.fromkeys(figure.SHOWN, 50.0), **usual}
                # On rails MRC is behind where a link is slow (B29).
                means |= {"mrc": 160.0} if (fabric, setting) == (RAILS, figure.SLOW) else {}
                means |= changes.get((fabric, name), {})
                frames.append(_named(name, means, wobble))

    for fabric in FABRICS:
        for index, message in enumerate(figure.LONGER):
            name = figure.part(fabric, figure.DEAD, message=message)
            means = {policy: counts[index] for policy, counts in (LOST | dict(lost)).items()}
            frame = _named(name, dict.fromkeys(means, 30.0), wobble)
            # As far apart as the times are.
            apart = index * wobble * pl.col("sending_increase").rank().mod(7) / 1e6
            counted = pl.col("policy").replace_strict(means) * (1 + apart)
            frames.append(frame.with_columns(lost_to_failure=counted))

    data = Data(Preset("default"), (), ())
    data.__dict__["frame"] = pl.concat(frames, how="diagonal_relaxed")
    return data


def _named(name: str, means: Mapping[str, float], wobble: float) -> pl.DataFrame:
    # Each load balancer has another wobble in each part: equal ones would differ by nothing.
    values = {
        policy: [mean / 100 + wobble * number * offset for offset in WOBBLE]
        for number, (policy, mean) in enumerate(means.items(), start=1 + len(name) % 3)
    }
    return runs(values, name=slug(name))


def changed(
    setting: str, transport: str = figure.FIXED, fabric: str = FAT_TREE, **means: float
) -> Changes:
    """Return other means of one part."""
    return {(fabric, figure.part(fabric, setting, transport)): means}


DECIDE: dict[str, Callable[[Data], Verdict]] = {
    "B22": figure.distance,
    "B23": figure.behind_random,
    "B24": figure.own_transport,
    "B25": figure.learned,
    "B26": figure.followed,
    "B27": figure.too_late,
    "B28": figure.learned_with_own,
    "B29": figure.slow,
    "B30": figure.probes,
}


@pytest.mark.parametrize("number", DECIDE)
def test_each_holds_where_single_runs_are_right(number: str) -> None:
    judgement = DECIDE[number](data_of({}, {}))
    assert (judgement.claim, judgement.verdict, judgement.seeds) == (number, HOLDS, 10)


@pytest.mark.parametrize("number", DECIDE)
def test_wide_intervals_leave_each_open(number: str) -> None:
    judgement = DECIDE[number](data_of({}, {}, wobble=1e6))
    assert judgement.verdict == FEW


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        ("B22", changed(figure.WHOLE, fabric=RAILS, mrc=5.0)),
        ("B23", changed(figure.WHOLE, host_pkt=13.0)),
        ("B24", changed(figure.WHOLE, figure.OWN, mrc=11.0)),
        ("B25", changed(figure.DEAD, fabric=LEAF_SPINE, mrc=36.0)),
        ("B26", changed(figure.FOLLOWED, mrc=0.1)),
        ("B27", changed(figure.DIES, mrc=13.0)),
        ("B28", changed(figure.DEAD, figure.OWN, mrc=310.0)),
        ("B29", changed(figure.SLOW, figure.OWN, mrc=150.0)),
        ("B29", changed(figure.SLOW, figure.OWN, RAILS, mrc=120.0)),
    ],
)
def test_each_is_partly_so_where_a_fabric_says_no(number: str, changes: Changes) -> None:
    assert DECIDE[number](data_of(changes, {})).verdict == PARTLY


@pytest.mark.parametrize(
    ("lost", "outcome"),
    [
        ({"mrc": (2500, 4000)}, HOLDS),
        ({"mrc": (2500, 5000)}, FAILS),
        ({"mrc": (2500, 2800)}, FAILS),
    ],
)
def test_probes_cost_between_a_sixteenth_and_a_part(
    lost: Mapping[str, tuple[float, float]], outcome: Outcome
) -> None:
    assert figure.probes(data_of({}, lost)).verdict == outcome


def test_one_run_of_long_timeouts_leaves_what_is_ahead_ahead() -> None:
    data = data_of({}, {})
    is_long = (pl.col("policy") == "mrc") & (pl.col("seed") == 1)
    changed_runs = data.frame.with_columns(
        sending_increase=pl.when(is_long).then(1e5).otherwise(pl.col("sending_increase"))
    )
    # With 20 seeds a single no leaves the share above one half.
    more = changed_runs.filter(pl.col("seed") > 1).with_columns(seed=pl.col("seed") + 100)
    data.__dict__["frame"] = pl.concat([changed_runs, more])
    judgement = figure.learned_with_own(data)
    assert judgement.verdict == HOLDS
    assert "fat-tree 18 of 19" in judgement.ours
    assert "open after 640 seeds" in judgement.evidence


def test_more_seeds_are_wanted_of_what_is_open_alone() -> None:
    needs = figure.probes(data_of({}, {}, wobble=1e6)).needs
    in_need = {
        (scenario.name, scenario.policy)
        for scenario in figure.scenarios(Preset("quick"))
        if needs(scenario)
    }
    longer = {slug(figure.part(fabric, figure.DEAD, message=8)) for fabric in FABRICS}
    longer |= {slug(figure.part(fabric, figure.DEAD, message=16)) for fabric in FABRICS}
    assert in_need == {(name, policy) for name in longer for policy in ("host_pkt", "mrc")}


@pytest.mark.parametrize("level", ["quick", "default"])
def test_links_that_fail_are_of_every_fabric(level: str) -> None:
    # The name of a link that is not there is refused only when the run begins.
    dead = [
        scenario
        for scenario in figure.scenarios(Preset(level))  # type: ignore[arg-type]
        if scenario.failures.events or scenario.failures.degraded
    ]
    one_of: dict[str, Scenario] = {scenario.name: scenario for scenario in dead}
    assert len(one_of) == len(FABRICS) * (4 + 2 + 2)
    for scenario in one_of.values():
        events = (*scenario.failures.events, *scenario.failures.degraded)
        assert [len(places(scenario.tree, event)[0]) for event in events] == [1]
