"""The compiler answers any text in time, with a program or one CompileError."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ofan_p4.compiler import CompileError, compile_source
from tests.emulation.compiler.fuzzing import KINDS, answer, fuzz

BOUNDED = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
GOOD = {"program", "diagnostic"}


@BOUNDED
@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    with pytest.raises(CompileError):
        compile_source(text)


@pytest.mark.parametrize("kind", KINDS)
@BOUNDED
@given(seed=st.integers(0, 1 << 32))
def test_texts_that_no_programmer_wrote_are_answered(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    assert answer(KINDS[kind](rng), rng) in GOOD


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_seconds_of_fuzzing_find_nothing() -> None:
    """OFAN_FUZZ_SECONDS gives it more than CI has."""
    counts: Counter[str] = Counter()
    for _, outcome, text in fuzz(int(os.environ.get("OFAN_FUZZ_SECONDS", "20")), seed=7):
        assert outcome in GOOD, f"{text}\n{outcome}"
        counts[outcome] += 1

    assert counts["program"] > 10 and counts["diagnostic"] > 100
