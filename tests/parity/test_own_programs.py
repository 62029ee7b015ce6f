"""Programs of the user's beside pauses, shared memory, trimming and faults: a part of 200 draws."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.parity import own_programs
from tests.parity.own_programs import COUNT, FAULTS, SWITCHES, case, judge
from tests.table.rows import EXPERIMENTS

# Every kind of switch with every kind of fault once is 36 of them.
SLICE = len(SWITCHES) * len(FAULTS)


@pytest.mark.parametrize("number", [4, 6])
def test_a_drawn_program_is_the_same_everywhere(number: int, tmp_path: Path) -> None:
    assert judge(case(number, 1, tmp_path))["equal"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2])
def test_programs_of_ones_own_are_the_same_everywhere(seed: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for number in range(SLICE):
        seen += judge(case(number, seed, tmp_path))

    # The comparison proves something: all of it happens.
    assert seen["judged"] > SLICE // 2
    assert min(seen[name] for name in ("dropped", "trimmed", "pauses", "lost_to_failure")) > 0


def test_draws_are_of_all_kinds() -> None:
    kinds = {
        (number % len(SWITCHES), number // len(SWITCHES) % len(FAULTS)) for number in range(COUNT)
    }
    assert len(kinds) == len(SWITCHES) * len(FAULTS)


def test_another_rule_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A program that claims to be a copy, and takes another way.
    def other(policy: str, folder: Path) -> Any:
        return EXPERIMENTS / "two_choices.p4"

    monkeypatch.setattr(own_programs, "copy_of", other)
    wrong = next(
        drawn for drawn in (case(number, 1, tmp_path) for number in range(20)) if drawn.is_copy
    )
    with pytest.raises(AssertionError):
        judge(wrong)
