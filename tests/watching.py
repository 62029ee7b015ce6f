"""Which files a program and all that it starts look for, open and run, as the kernel is asked."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

STRACE = shutil.which("strace")
# [pid] call(arguments) = result; with -y a folder's descriptor is followed by the folder.
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)")
_FOLDER = re.compile(r"^(?:AT_FDCWD|\d+)<([^>]*)>, ")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


@contextmanager
def watched(
    command: Sequence[str | Path], log: Path, folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a folder; the files that it and its children open go to a log."""
    assert STRACE is not None
    # -D: the process that is started is the program itself, and who watches is its child.
    traced_command = [STRACE, "-D", "-f", "-qq", "-y", "-e", "trace=%file", "-o", log, *command]
    with subprocess.Popen(
        list(map(str, traced_command)),
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process


def asked_for(log: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each call and the path that it named, found or not; relative ones are of a folder."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            call = _CALL.match(line)
            named = _TEXT.search(call[2]) if call else None
            # An empty name is that of a descriptor; a mount's first name is often none.
            if not (call and named and named[1]) or call[1] in ("getcwd", "mount"):
                continue

            # A file that is opened so is not read.
            if "O_PATH" in call[2]:
                continue

            base = _FOLDER.match(call[2])
            path = os.path.join(base[1] if base else folder, named[1])
            yield call[1], Path(os.path.normpath(path))
