"""Shared by tests of doors: the folder of our files, and an experiment that ends at once."""

from pathlib import Path

import ofan

ROOT = Path(ofan.__file__).parent
SMALL = ("--set", "policies=ofan", "--set", "collective.message_bytes=4096")
