"""Runs and estimates that are made up, to be judged."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from reproduction.report.statistics import Estimate


def runs(increases: Mapping[str, Sequence[float]], **columns: Any) -> pl.DataFrame:
    """Return a frame of runs: one row a load balancer and seed."""
    rows = [
        {
            "policy": policy,
            "seed": seed,
            "increase": value,
            "sending_increase": value,
            "cct_ps": 17_000_000 * (1 + value),
            "sending_cct_ps": 17_000_000 * (1 + value),
            **columns,
        }
        for policy, values in increases.items()
        for seed, value in enumerate(values, start=1)
    ]
    return pl.DataFrame(rows)


def exactly(mean: float, half: float = 0.0) -> Estimate:
    """Return the mean of ten seeds, and half of its confidence interval."""
    return Estimate(mean, half, 10)
