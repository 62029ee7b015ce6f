"""The one folder of a running emulation: /run/ofan, locked, so that there is one at a time.

Sockets and logs are made in it and nowhere else. Whoever gets the lock empties the folder first: what a killed run
left there is gone before the next one starts.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from controller.control import RUN_FOLDER
from emulation.errors import BusyError

OWNER = "pid"


@contextmanager
def run_folder(path: Path = RUN_FOLDER) -> Iterator[Path]:
    """Hold the folder (mode 0700) for this process, and remove it at the end; raises BusyError if another has it."""
    lock = _lock(path)
    try:
        _empty(path)
        (path / OWNER).write_text(f"{os.getpid()}\n")
        yield path
    finally:
        _empty(path)
        path.rmdir()
        os.close(lock)


def _lock(path: Path) -> int:
    """Return a descriptor that locks the folder which has this name now, not one that its last owner is removing."""
    while True:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise BusyError(f"another emulation runs here ({_owner(path)}): end it first") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        os.close(lock)


def _owner(path: Path) -> str:
    try:
        return f"process {int((path / OWNER).read_text())}"
    except (OSError, ValueError):
        return "it has only just started"


def _empty(path: Path) -> None:
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
