"""Fault drills: what a person would do by hand to break a network, seeded, by the hundred.

`make drills` runs them; `python -m tests.drills --help` says how to choose. Needs root and Mininet.
"""
