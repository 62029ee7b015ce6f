"""The verdict of a claim, by its checks and its seeds."""

import pytest

from reproduction.report.claims import CLAIMS, combined, decide, sure
from reproduction.report.figure import (
    FAILS,
    FEW,
    HOLDS,
    OPEN,
    PARTLY,
    Outcome,
    Verdict,
)


@pytest.mark.parametrize(
    ("outcomes", "together"),
    [
        ([HOLDS], HOLDS),
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, FAILS], PARTLY),
        ([FAILS], FAILS),
        ([HOLDS, OPEN], OPEN),
        ([HOLDS, FEW], FEW),
        ([], OPEN),
    ],
)
def test_verdicts_of_a_claim_come_together(outcomes: list[Outcome], together: Outcome) -> None:
    assert combined([Verdict("C01", outcome, "") for outcome in outcomes]) == together


def test_a_changed_criterion_does_not_count() -> None:
    assert (
        combined([Verdict("C01", FAILS, ""), Verdict("C01", HOLDS, "", criterion="another")])
        == FAILS
    )


@pytest.mark.parametrize(
    ("checks", "outcome"),
    [
        ([True, True], HOLDS),
        ([True, False], PARTLY),
        ([False, False], FAILS),
        ([True, None], FEW),
        ([False, None], FEW),
        ([True, False, None], PARTLY),
    ],
)
def test_checks_decide(checks: list[bool | None], outcome: Outcome) -> None:
    assert decide(checks) == outcome


@pytest.mark.parametrize(
    ("claim", "seeds", "outcome"),
    [("C02", 3, FEW), ("C02", 10, HOLDS), ("C17", 30, FEW), ("C17", 300, HOLDS)],
)
def test_a_verdict_needs_the_seeds_of_its_claim(claim: str, seeds: int, outcome: Outcome) -> None:
    assert sure(Verdict(claim, HOLDS, "", seeds=seeds), CLAIMS).verdict == outcome


def test_what_is_not_drawn_needs_no_seeds() -> None:
    assert sure(Verdict("C22", HOLDS, ""), CLAIMS).verdict == HOLDS


def test_a_look_decides_nothing_by_runs() -> None:
    verdict = Verdict("C31", HOLDS, "", seeds=1000)

    assert sure(verdict, CLAIMS).verdict == HOLDS
    assert sure(verdict, CLAIMS, is_look=True).verdict == FEW
    assert sure(Verdict("C22", HOLDS, ""), CLAIMS, is_look=True).verdict == HOLDS


def test_every_claim_of_the_paper_is_listed() -> None:
    assert list(CLAIMS) == [f"C{number:02}" for number in range(1, 32)]
