"""Outcomes of runs: one type for all networks, its folder, tables, pictures, comparisons."""
