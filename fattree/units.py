"""Units of time: simulated time is integer picoseconds everywhere."""

PS_PER_NS = 1_000
PS_PER_US = 1_000 * PS_PER_NS
PS_PER_MS = 1_000 * PS_PER_US
PS_PER_SECOND = 1_000 * PS_PER_MS
NS_PER_SECOND = 10**9
