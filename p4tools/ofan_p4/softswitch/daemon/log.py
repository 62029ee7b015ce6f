"""The log of the process: one line per event, to the console or a file.

Callers ask `wants` first, so that a switch without a log does not even build the line.
"""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TextIO

from ofan_p4.softswitch.base.errors import SoftswitchError
from ofan_p4.softswitch.daemon.options import LEVELS, Options


class LogError(SoftswitchError):
    """The log file cannot be written."""


class Log:
    """Writes lines of a level and above."""

    def __init__(self, level: str, file: TextIO | None) -> None:
        self._threshold = LEVELS.index(level)
        self._file = file

    def wants(self, level: str) -> bool:
        """Return whether lines of this level are written."""
        return self._file is not None and LEVELS.index(level) >= self._threshold

    def write(self, level: str, text: str) -> None:
        """Write one line if its level is wanted."""
        if self._file is not None and self.wants(level):
            self._file.write(f"[{datetime.now():%H:%M:%S.%f}] [{level}] {text}\n")
            self._file.flush()

    def close(self) -> None:
        """Close a log file."""
        if self._file is not None and self._file is not sys.stdout:
            self._file.close()


def open_log(options: Options) -> Log:
    """Return the log that the options ask for."""
    if options.log_level == "off":
        return Log("off", None)
    if options.log_file is None:
        return Log(options.log_level, sys.stdout)

    try:
        return Log(options.log_level, open(options.log_file, "a", encoding="utf-8"))
    except OSError as error:
        raise LogError(f"cannot write {options.log_file}: {error.strerror}") from None
