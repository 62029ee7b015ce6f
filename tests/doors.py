"""What tests of doors share: where our files are, and an experiment that is over at once."""

from pathlib import Path

import ofan

ROOT = Path(ofan.__file__).parent
SMALL = ("--set", "policies=ofan", "--set", "collective.message_bytes=4096")
