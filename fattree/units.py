"""Units: simulated time is integer picoseconds everywhere, alpha a binary fraction."""

from collections.abc import Iterable

PS_PER_NS = 1_000
PS_PER_US = 1_000 * PS_PER_NS
PS_PER_MS = 1_000 * PS_PER_US
PS_PER_SECOND = 1_000 * PS_PER_MS
NS_PER_SECOND = 10**9
# Virtual networks take times up to here, shown in microseconds; real networks take longer.
LONG_PS = 10 * PS_PER_MS
# A shared memory's alpha is a multiple of 2**-16: so thresholds are integers on all networks.
ALPHA_BITS = 16


def time_unit(times_ps: Iterable[float]) -> tuple[str, int]:
    """Return the unit in which people read such times, the same for all, and its picoseconds."""
    return ("ms", PS_PER_MS) if max(times_ps, default=0) >= LONG_PS else ("µs", PS_PER_US)
