"""Hypothesis without deadlines: examples differ in size by design, and machines in speed."""

from hypothesis import settings

settings.register_profile("ofan", deadline=None)
settings.load_profile("ofan")
