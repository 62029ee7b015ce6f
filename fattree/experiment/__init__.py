"""The tables of an experiment file, each with its keys, units, limits and defaults."""
