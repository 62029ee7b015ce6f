"""The order of candidates: by their worst condition, decided with a margin over paired seeds."""

from math import inf

import pytest

from sim.choice.advice import Ground, advice, changes
from sim.choice.candidates import Candidate
from sim.choice.conditions import CONDITIONS
from sim.choice.ranking import Verdict, compared, far, leaders, open_pairs, ranked

# Ofan is best but where routes do not know the slow link; both vary alike from seed to seed.
SEEDS = (0.0, 1.0, 0.5, 0.2)
TIMES = {
    "ofan": {"up": [1 + s for s in SEEDS], "slow-unknown": [90 + s for s in SEEDS]},
    "switch_pkt_ar": {"up": [9 + s for s in SEEDS], "slow-unknown": [50 + s for s in SEEDS]},
    "rsq": {"up": [10 + s for s in SEEDS], "slow-unknown": [50.5 + s for s in SEEDS]},
    "flow": {"up": [200 + s for s in SEEDS], "slow-unknown": [210 + s for s in SEEDS]},
}
MARGIN = 2.0


def ground(times: dict[str, dict[str, list[float]]], **weights: float) -> Ground:
    candidates = {name: Candidate(name, name, name) for name in times}
    conditions = {name: CONDITIONS[name] for name in ("up", "slow-unknown")}
    named = {name.replace("_", "-"): weight for name, weight in weights.items()}
    return Ground(candidates, conditions, times, named, MARGIN)


def test_rows_are_in_the_order_of_their_worst_condition() -> None:
    places = ranked(TIMES, {}, MARGIN)
    assert [ranked_row.name for ranked_row in places] == ["switch_pkt_ar", "rsq", "ofan", "flow"]
    assert [ranked_row.condition for ranked_row in places] == ["slow-unknown"] * 4
    assert places[0].worst.mean == pytest.approx(50.425)
    assert places[0].mean == pytest.approx((9.425 + 50.425) / 2)


def test_a_difference_below_the_margin_is_none() -> None:
    verdicts = [ranked_row.verdict for ranked_row in ranked(TIMES, {}, MARGIN)]
    assert verdicts == [Verdict.LEVEL, Verdict.AHEAD, Verdict.AHEAD, None]
    assert leaders(TIMES, {}, MARGIN) == ["switch_pkt_ar", "rsq"]
    # With a smaller margin the same runs tell them apart: seeds are paired.
    assert leaders(TIMES, {}, 0.1) == ["switch_pkt_ar"]


def test_a_condition_that_counts_nothing_changes_the_order() -> None:
    assert ranked(TIMES, {"slow-unknown": 0}, MARGIN)[0].name == "ofan"
    assert ranked(TIMES, {"slow-unknown": 0.1}, MARGIN)[0].name == "ofan"


def test_one_seed_decides_nothing() -> None:
    first = {
        name: {condition: v[:1] for condition, v in times.items()} for name, times in TIMES.items()
    }
    assert compared(first["ofan"], first["flow"], MARGIN) is Verdict.OPEN
    assert open_pairs(first, {}, MARGIN) != []
    assert open_pairs(TIMES, {}, MARGIN) == []


def test_all_conditions_of_the_first_must_be_below_the_worst_of_the_second() -> None:
    first = {"up": [50.0, 51.0, 50.0, 49.0], "jitter": [0.0, 190.0, 0.0, 5.0]}
    second = {"up": [70.0, 71.0, 70.0, 69.0]}
    # At its worst, 50, it is ahead; but jitter may be worse than all.
    assert compared(first, second, MARGIN) is Verdict.OPEN
    assert compared({"up": first["up"]}, second, MARGIN) is Verdict.AHEAD


def test_a_run_without_an_end_is_last() -> None:
    times = {**TIMES, "mrc": {"up": [0.0] * 4, "slow-unknown": [inf, 1.0, 1.0, 1.0]}}
    places = ranked(times, {}, MARGIN)
    assert places[-1].name == "mrc"
    assert places[-2].verdict is Verdict.AHEAD


def test_rows_far_behind_the_third_get_no_more_seeds() -> None:
    assert far(TIMES, {}) == {"flow"}
    assert far({name: TIMES[name] for name in ("ofan", "rsq", "flow")}, {}) == set()
    # A row with one seed is never distinguished by it, and is not taken for level either.
    few = {**TIMES, "flow": {condition: v[:1] for condition, v in TIMES["flow"].items()}}
    assert leaders(few, {}, MARGIN, {"flow"}) == ["switch_pkt_ar", "rsq"]
    assert "flow" in leaders(few, {}, MARGIN)


def test_advice_names_no_single_first_where_two_are_level() -> None:
    said = advice(ground(TIMES))
    assert said.startswith("No load balancer is shown to be better than all others by 2 points")
    assert "level with it, no difference above 2 points: rsq" in said


def test_advice_names_the_first_and_the_next() -> None:
    said = advice(ground(TIMES, slow_unknown=0.0).within(["up"]))
    assert said.startswith("Run ofan: at worst it ends 1.4 % over the bound (all links are up),")
    assert "switch_pkt_ar as the next one 9.4 %" in said


def test_what_would_change_it() -> None:
    lines = changes(ground(TIMES))
    assert any(line.startswith("only where all links are up: ofan (1.4 %") for line in lines)
    assert not any("only where a link has half" in line for line in lines)
    only = {name: TIMES[name] for name in ("switch_pkt_ar", "flow")}
    assert changes(ground(only)) == [
        "Nothing is shown to: with each condition alone, or without it, these runs leave"
        " switch_pkt_ar first, or level with the first. More runs may tell more apart (--minutes)."
    ]
