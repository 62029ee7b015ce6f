"""Experiments as text: reading and writing their files, and their wrong or unused keys."""
