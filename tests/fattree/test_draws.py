"""Random numbers: alike on every kind of integer, uniform, and independent between components."""

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba.extending import register_jitable

from fattree import draws
from fattree.draws import Stream, below, component, mix, scramble
from tests.fattree.brute_force import seeds

components = st.builds(component, st.sampled_from(Stream), st.integers(0, 2**20))
counters = st.integers(0, 2**62 - 1)
register_jitable(scramble)
mix_compiled, below_compiled = numba.njit(mix), numba.njit(below)
COUNT = 1 << 16


@given(seeds, components, counters)
def test_integers_arrays_and_kernels_draw_the_same(seed: int, name: int, n: int) -> None:
    drawn = mix(seed, name, n)
    assert mix(np.array([seed]), np.array([name]), np.array([n])).tolist() == [drawn]
    assert mix_compiled(seed, name, n) == drawn
    assert 0 <= drawn <= draws.MASK


@given(st.integers(0, draws.MASK), st.integers(1, 2**46))
def test_below_is_an_exact_fraction_of_the_bound(drawn: int, bound: int) -> None:
    scaled = below(drawn, bound)
    assert scaled == drawn * bound >> 32 < bound
    assert below(np.array([drawn]), np.array([bound])).tolist() == [scaled]
    assert below_compiled(drawn, bound) == scaled


def test_scramble_is_a_permutation() -> None:
    block = np.arange(COUNT, dtype=np.int64) * 65_537
    assert len(np.unique(scramble(block))) == COUNT


@given(seeds, components)
def test_streams_are_uniform(seed: int, name: int) -> None:
    """Chi-square over 64 cells of 16,384 draws: 63 degrees of freedom exceed 160 once in 10^10
    streams.
    """
    cells = np.bincount(below(mix(seed, name, np.arange(COUNT // 4)), 64), minlength=64)
    expected = COUNT / 4 / 64
    assert ((cells - expected) ** 2 / expected).sum() < 160


@given(seeds, components, components)
def test_components_are_not_correlated(seed: int, component: int, other_component: int) -> None:
    n = np.arange(COUNT // 4)
    first, second = (mix(seed, name, n).astype(float) for name in (component, other_component))
    if component != other_component:
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.06  # 7.7 standard deviations


@given(seeds, components)
def test_successive_draws_are_not_correlated(seed: int, name: int) -> None:
    drawn = mix(seed, name, np.arange(COUNT // 4)).astype(float)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.06
