"""A copy of the checkout in which tests run, with one of its files changed or as they are."""

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 4 << 30
# Real interfaces are tested by whoever may make them.
MARKS = "not slow" if os.geteuid() == 0 else "not slow and not root"
# pytest's exit codes: all passed, some failed, nothing to run.
PASSED, FAILED, NOTHING = 0, 1, 5
P4_TOOLS = "p4tools"


@dataclass(frozen=True)
class Ended:
    """How a pytest process ended: which tests failed, in order, and its processor seconds."""

    status: int
    failed: list[str]
    seconds: float


def python_path(root: Path, *folders: Path) -> str:
    """Return the PYTHONPATH of a checkout: that of Ofan, that of the P4 tools, and others."""
    return ":".join(map(str, (root, root / P4_TOOLS, *folders)))


class Checkout:
    """A copy of all files that git knows or would take, and caches of its own beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tree"
        self.caches = folder / "caches"
        self.caches.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)

    @contextmanager
    def changed(self, name: str, source: str) -> Iterator[None]:
        """Give a file another content for a while."""
        path = self.folder / name
        original, times = path.read_bytes(), path.stat()
        path.write_text(source)
        try:
            yield
        finally:
            path.write_bytes(original)
            # Numba and Python know compiled code by the file's time.
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def pytest(
        self, options: list[str], *, cpu_s: float, wall_s: float, extra: dict[str, str]
    ) -> Ended:
        """Run the quick tests among `options`; one that ends by a limit has failed, too."""
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider"]
        environment = os.environ | {
            # Entry points and child processes must find the copy, not the installed package.
            "PYTHONPATH": python_path(self.folder),
            "NUMBA_CACHE_DIR": str(self.caches / "numba"),
            "XDG_CACHE_HOME": str(self.caches / "other"),
            # The same hypothesis examples for every mutant.
            "CI": "true",
        }
        # A file, and not a pipe, which a process that is left running would keep open.
        report = self.caches / "words"
        with report.open("wb") as output:
            process = subprocess.Popen(
                [*command, "-m", MARKS, *options],
                cwd=self.folder,
                env=environment | extra,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=partial(limit, cpu_s),
            )
        late = threading.Timer(wall_s, kill, (process.pid,))
        late.start()
        _, status, used = os.wait4(process.pid, 0)
        late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        # Whatever a failed test has left running.
        kill(process.pid)
        seconds = used.ru_utime + used.ru_stime
        return Ended(process.returncode, failures(report.read_text(errors="replace")), seconds)


def kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def limit(seconds: float) -> None:
    """Bound a test process's time on the processor and its memory: an endless loop needs both."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, hard))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))


def failures(report: str) -> list[str]:
    """Return the tests that failed, or could not even be collected."""
    lines = report.splitlines()
    return [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]


def digest(names: list[str]) -> str:
    """Return a hash of files' contents; one that is gone counts as empty."""
    hashed = hashlib.sha256()
    for name in names:
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b""
        hashed.update(hashlib.sha256(name.encode() + b"\0" + content).digest())
    return hashed.hexdigest()[:16]
