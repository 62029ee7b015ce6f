"""The collector of garbage: during compilations it waits longer, afterwards as long as before."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numba
import pytest
from numba.core.errors import TypingError
from numba.extending import overload

from sim.kernels import sparing

OWN = (701, 11, 12)
Noted = list[tuple[int, int, int]]


@pytest.fixture(autouse=True)
def own_thresholds() -> Iterator[None]:
    """Let a test begin with its own thresholds."""
    before = gc.get_threshold()
    gc.set_threshold(*OWN)
    yield
    gc.set_threshold(*before)


def noting(is_sound: bool = True) -> tuple[Callable[[], None], Noted]:
    """Return a function that notes the thresholds when it is compiled, and can fail."""
    noted: Noted = []

    def function() -> None:
        pass

    def compiled() -> Any:
        noted.append(gc.get_threshold())
        return (lambda: None) if is_sound else None

    overload(function)(compiled)
    return function, noted


def test_a_compilation_has_thresholds_of_its_own() -> None:
    function, noted = noting()
    numba.njit(lambda: function())()
    assert {*noted} == {sparing.THRESHOLDS} != {OWN}
    assert gc.get_threshold() == OWN


def test_a_compilation_that_fails_gives_them_back() -> None:
    function, noted = noting(is_sound=False)
    with pytest.raises(TypingError):
        numba.njit(lambda: function())()

    assert {*noted} == {sparing.THRESHOLDS}
    assert gc.get_threshold() == OWN


def test_the_inner_of_two_compilations_ends_nothing() -> None:
    function, noted = noting()
    inner = numba.njit(lambda: None)

    def outer() -> None:
        inner()
        function()

    numba.njit(outer)()
    assert {*noted} == {sparing.THRESHOLDS}
    assert gc.get_threshold() == OWN
