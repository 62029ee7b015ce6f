"""Machine code on disk: compiled once, and loaded only where no other user can have written.

Loaded code runs, and numba's files are pickles, which can run any code as soon as they are read.
So every folder on the way to a file must be root's or this user's, with no right for others to
write there, and so must the file. It begins with a hash of its name and of its content, so that a
damaged or moved file counts as missing.

Imports nothing but the standard library: simulator and switch, which import nothing of each other,
keep their code in the same way.
"""

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MAGIC = b"ofan cache 2\n"
HEAD_BYTES = len(MAGIC) + hashlib.sha256().digest_size
# How many files a folder keeps: those that were used last.
MOST_FILES = 256
# If set, numba compiles with checks of indexes, but it loads kept code with or without them.
BOUNDS_CHECKED = "NUMBA_BOUNDSCHECK"


class Place(NamedTuple):
    """A folder for machine code, None if no folder is safe, and a note on it for the user."""

    folder: Path | None
    note: str = ""


def place(*names: str, own: str | None = None) -> Place:
    """Return a folder below the user's cache, made if need be, else one below a private folder.

    `own` is a variable that names another base. None where others could write in both.
    """
    first, *rest = names
    # A process with checks must not load code without them, nor leave code with checks to others.
    if os.environ.get(BOUNDS_CHECKED, "0") not in ("", "0"):
        first = f"{first}-checked"

    names = (first, *rest)
    base = os.environ.get(own or "") or os.environ.get("XDG_CACHE_HOME") or _home_cache()
    if base is not None and (folder := _folder(Path(base), "ofan", *names)):
        return Place(folder)

    private = Path(tempfile.gettempdir()) / f"ofan-{os.geteuid()}"
    if folder := _folder(private.parent, private.name, "ofan", *names):
        return Place(
            folder, f"{base} is not this user's to write: keeping compiled code in {private}"
        )

    return Place(
        None,
        f"{base} is not this user's to write, and {private} is not this user's alone: "
        "compiling for this run only",
    )


def _home_cache() -> str | None:
    # Without a home folder, Python raises a RuntimeError.
    try:
        return str(Path.home() / ".cache")
    except RuntimeError:
        return None


def _folder(base: Path, *names: str) -> Path | None:
    """Return the folder of these names below a base, None where others could change the way there.

    A relative base gives None: its meaning depends on the current folder.
    """
    if not base.is_absolute():
        return None

    # Links are followed in the base, but not below it.
    folder = Path(os.path.realpath(base)).joinpath(*names)
    try:
        # From the root down: the content of a folder that others cannot change stays as it is.
        safe = all(_is_safe(_made(directory)) for directory in (*reversed(folder.parents), folder))
        return folder if safe and _is_ours(folder.lstat()) and os.access(folder, os.W_OK) else None
    # A file in the way, a disk that is full or read-only: code is compiled each time.
    except OSError:
        return None


def _made(folder: Path) -> os.stat_result:
    """Return the status of a folder, or of a link itself; make the folder if the path is free."""
    with suppress(FileNotFoundError):
        return folder.lstat()

    # Somebody of ours may be as quick.
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder.lstat()


def _is_safe(info: os.stat_result) -> bool:
    """Return whether only root and this user can change the content of a folder."""
    if not stat.S_ISDIR(info.st_mode) or info.st_uid not in (0, os.geteuid()):
        return False

    # In a sticky folder, as /tmp, users move only their own files; the next folder is checked, too.
    return bool(info.st_mode & stat.S_ISVTX) or not _others_write(info)


def _is_ours(info: os.stat_result) -> bool:
    return info.st_uid == os.geteuid() and not _others_write(info)


def _others_write(info: os.stat_result) -> bool:
    # Many systems give everybody a group of its own, and let it write.
    shared = stat.S_IWGRP if info.st_gid != os.getegid() else 0
    return bool(info.st_mode & (stat.S_IWOTH | shared))


def read(folder: Path, name: str) -> bytes | None:
    """Return the content kept under a name, None where no file can be trusted."""
    # No link is followed, and a pipe without a writer does not block.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        number = os.open(folder / name, flags)
        with os.fdopen(number, "rb") as file:
            status = os.fstat(number)
            if not (stat.S_ISREG(status.st_mode) and _is_ours(status)):
                return None

            content = file.read()
            # Files used last are removed last.
            os.utime(number)
    except OSError:
        return None

    body = content[HEAD_BYTES:]
    return body if content[:HEAD_BYTES] == _head(name, body) else None


def write(folder: Path, name: str, body: bytes, limit: int = MOST_FILES) -> None:
    """Keep a content under a name, and so many files at most; content not kept is made again."""
    # Under another name first: a reader finds a whole file or none.
    with suppress(OSError):
        number, temporary = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(_head(name, body) + body)

            Path(temporary).replace(folder / name)
        except OSError:
            os.unlink(temporary)

    prune(folder, limit)


def _head(name: str, body: bytes) -> bytes:
    return MAGIC + hashlib.sha256(name.encode() + b"\0" + body).digest()


def prune(folder: Path, limit: int) -> None:
    """Remove the files of a folder that were used least recently, beyond so many."""
    with suppress(OSError), os.scandir(folder) as entries:
        files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        if len(files) <= limit:
            return

        for entry in sorted(files, key=_used)[: len(files) - limit]:
            # Another process may remove the same.
            with suppress(FileNotFoundError):
                os.unlink(entry)


def _used(entry: "os.DirEntry[str]") -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return 0.0


def prune_folders(parent: Path, keep: Path, limit: int) -> None:
    """Remove the oldest folders beside `keep`, beyond so many, with the files in them."""
    with suppress(OSError), os.scandir(parent) as entries:
        folders = [
            entry
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and entry.path != str(keep)
        ]
        for entry in sorted(folders, key=_used)[: max(0, len(folders) - limit)]:
            shutil.rmtree(entry.path, ignore_errors=True)
