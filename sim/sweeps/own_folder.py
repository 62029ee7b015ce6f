"""A folder for the files of a running process, which does not outlive it for long.

A killed process removes nothing. So a process locks its folder as long as it lives, and removes
the folders of its kind that no process holds any more.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

# A process has locked its folder long before the folder is so old.
MADE_SECONDS = 60


@contextmanager
def own_folder(prefix: str) -> Iterator[Path]:
    """Make a folder of a kind (its name's beginning), and remove it at the end."""
    remove_leftovers(prefix)
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder, locked(folder):
        yield Path(folder)


@contextmanager
def locked(folder: str | Path) -> Iterator[bool]:
    """Lock a folder; yield whether no other process had locked it. The end unlocks it.

    Raises OSError where there is no such folder, or the file system has no locks.
    """
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield _lock(number, folder)
    finally:
        os.close(number)


def _lock(number: int, folder: str | Path) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A folder that its last owner has just removed can be locked, too.
        return os.path.samestat(os.fstat(number), os.stat(folder))
    except (BlockingIOError, FileNotFoundError):
        return False


def remove_leftovers(prefix: str) -> None:
    """Remove the folders of killed processes."""
    for folder in Path(gettempdir()).glob(f"{prefix}*"):
        # Another process of ours may be quicker; folders of other users stay.
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > MADE_SECONDS:
                with locked(folder) as is_nobodys:
                    if is_nobodys:
                        shutil.rmtree(folder, ignore_errors=True)
