"""Fault drills: acts of a person who breaks a network by hand, seeded, by the hundred.

`make drills` runs them; `python -m tests.drills --help` shows the options. Needs root and Mininet.
"""
