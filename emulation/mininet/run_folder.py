"""The folder of a running emulation: /run/ofan, locked, so that one emulation runs at a time.

Sockets and logs are made in it and nowhere else. A run that gets the lock empties the folder first:
remains of a killed run are gone before the next run starts.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emulation.errors import BusyError, NetworkError

# Where root alone makes folders, and which no reboot survives.
RUN_FOLDER = Path("/run/ofan")
# The file with the process that has the lock; for messages only.
OWNER = "pid"


@contextmanager
def run_folder(path: Path = RUN_FOLDER) -> Iterator[Path]:
    """Hold the folder (mode 0700) for this process, and remove it at the end.

    Raises BusyError if another has it, NetworkError if something else than a folder of ours has
    that name.
    """
    lock = _lock(path)
    try:
        _empty(path)
        (path / OWNER).write_text(f"{os.getpid()}\n")
        yield path
    finally:
        # Unlocked last: a run that waits for the lock finds no folder, and makes another.
        _empty(path)
        path.rmdir()
        os.close(lock)


def _lock(path: Path) -> int:
    """Return a descriptor that locks the folder of this name, none that is being removed."""
    while True:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        # Removed by its owner between the two calls.
        except FileNotFoundError:
            continue
        except OSError as error:
            raise NetworkError(
                f"{path} must be a folder, and no link to one ({error.strerror}): remove it"
            ) from None

        _make_private(path, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise BusyError(f"another emulation runs here ({_owner(path)}): end it first") from None

        # A folder that has been removed can still be locked by a process that had it open.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock

        os.close(lock)


def _make_private(path: Path, folder: int) -> None:
    """Make an open folder accessible to its owner only.

    Raises NetworkError where the folder is another user's.
    """
    status = os.fstat(folder)
    if status.st_uid != os.geteuid():
        os.close(folder)
        raise NetworkError(f"{path} belongs to user {status.st_uid}, not to us: remove it")

    # mkdir's mode is for new folders only.
    if status.st_mode & 0o077:
        os.fchmod(folder, 0o700)


def _owner(path: Path) -> str:
    try:
        return f"process {int((path / OWNER).read_text())}"
    except (OSError, ValueError):
        return "it has only just started"


def _empty(path: Path) -> None:
    for entry in path.iterdir():
        # A link is removed, and its target stays.
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
