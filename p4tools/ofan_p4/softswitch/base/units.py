"""Units of time; the switch imports nothing of ours, so this is not `fattree.units`."""

PS_PER_US = 10**6
PS_PER_SECOND = 10**12
