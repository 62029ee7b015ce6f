"""Isolation of our processes: the processes that they start run no foreign file.

Most of them run as root, in the user's current folder: Python would look there for modules first,
then in the folders of PYTHONPATH, and in the environment's home; and libraries look there for their
settings. Imports nothing but the standard library, as `ofan doctor` needs it where nothing else can
be imported.
"""

import os
import pwd
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

# The folder of our packages: a checkout, or `pip`'s.
ROOT = Path(__file__).resolve().parents[1]

# A file beside an installation's Python: the interpreter with p4runtime-shell (setup.sh).
SHELL_RECORD = "ofan-shell"

# The variables that our processes need; names of our own begin with OFAN_.
KEPT = frozenset({"LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "SUDO_UID", "SUDO_GID"})
# The abilities of a terminal, and shells' requests for completion.
TERMINAL = frozenset({"COLUMNS", "LINES", "COLORTERM", "NO_COLOR", "FORCE_COLOR"})
COMPLETION = frozenset({"_OFAN_COMPLETE", "COMP_WORDS", "COMP_CWORD"})
OURS = "OFAN_"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The folders of the caller's PATH in which root's process does not look for programs.
UNSEARCHED = "OFAN_UNSEARCHED"

# `-I` leaves out the current folder, PYTHON* variables and the user's own packages. The
# installation stays, and the root, for a checkout beside an installation of another checkout.
_START = (
    "import runpy, sys; root, module = sys.argv[1:3]; del sys.argv[1:3];"
    "root in sys.path or sys.path.insert(0, root);"
    "from hostagent.isolation import shut_out_others; shut_out_others();"
    "runpy.run_module(module, run_name='__main__', alter_sys=True)"
)


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of this installation, and no file from elsewhere.

    To be started with `clean_environment`.
    """
    return [sys.executable, "-I", "-c", _START, str(ROOT), module, *arguments]


def clean_environment() -> dict[str, str]:
    """Return the variables that a process of ours gets."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT | TERMINAL | COMPLETION or name.startswith(OURS)
    }

    # The folder of an empty or relative entry depends on the current folder.
    folders = [name for name in os.environ.get("PATH", PATH).split(":") if os.path.isabs(name)]
    if os.geteuid() == 0:
        unsafe = [name for name in folders if os.path.isdir(name) and not is_roots(name)]
        folders = [os.path.realpath(name) for name in folders if is_roots(name)]
        folders = folders or list(filter(is_roots, PATH.split(":")))
        # A process with a clean environment does not see these folders.
        kept |= {UNSEARCHED: ":".join(unsafe)} if unsafe else {}

    return {**kept, "PATH": ":".join(folders) or PATH, "HOME": _home()}


def is_roots(folder: str) -> bool:
    """Return whether root alone can put files into a folder, or replace the folder."""
    path = Path(os.path.realpath(folder))
    try:
        parts = [(ancestor.stat(), ancestor) for ancestor in (path, *path.parents)]
    except OSError:
        return False

    for status, part in parts:
        is_writable = status.st_mode & stat.S_IWOTH or (
            status.st_mode & stat.S_IWGRP and status.st_gid != 0
        )
        # In a folder as /tmp only root can replace root's files.
        is_safe = not is_writable or (part != path and status.st_mode & stat.S_ISVTX)
        if status.st_uid != 0 or not is_safe:
            return False

    return True


def unsearched_folders() -> list[str]:
    """Return the folders of the caller's PATH in which root's process does not look."""
    return [name for name in os.environ.get(UNSEARCHED, "").split(":") if name]


def _home() -> str:
    # The home of this process's user, not the caller's, which `sudo` may keep.
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


@contextmanager
def clean() -> Iterator[None]:
    """Give this process the clean environment for a while, for programs that libraries start."""
    before = dict(os.environ)
    cleaned = clean_environment()
    os.environ.clear()
    os.environ.update(cleaned)

    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Stand in the root folder for a while, where root alone puts files."""
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    os.chdir("/")
    try:
        yield
    finally:
        os.fchdir(here)
        os.close(here)


class Elsewhere(MetaPathFinder):
    """A finder that imports some libraries from the root folder: they read the current folder."""

    # numba: .numba_config.yaml. Matplotlib: matplotlibrc. Both can name modules to import. Mininet
    # imports distutils, and setuptools asks for pybuilddir.txt.
    LIBRARIES = ("numba", "matplotlib", "mininet")

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of these libraries, None for any other."""
        if name.partition(".")[0] not in self.LIBRARIES:
            return None

        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            # Only of this loader, which is made for this module.
            loader: Any = spec.loader
            loader.exec_module = _elsewhere(loader.exec_module)

        return spec


def _elsewhere(load: Any) -> Any:
    def exec_module(module: ModuleType) -> None:
        with elsewhere():
            load(module)

        # numba reads this file whenever it compiles: the file is always empty.
        if settings := sys.modules.get("numba.core.config"):
            vars(settings)["_config_fname"] = os.devnull

    return exec_module


def shut_out_others() -> None:
    """Free root's process from the caller's variables and current folder."""
    if os.geteuid() != 0:
        return

    cleaned = clean_environment()
    os.environ.clear()
    os.environ.update(cleaned)
    if not any(isinstance(finder, Elsewhere) for finder in sys.meta_path):
        sys.meta_path.insert(0, Elsewhere())


def dask_setup(_worker: object) -> None:
    """Do the same in a process of Dask's, before it imports its tasks: Dask calls this."""
    shut_out_others()


def shell_python() -> Path | None:
    """Return the interpreter that has p4runtime-shell, as setup recorded it.

    None without a record.
    """
    try:
        python = Path(Path(sys.prefix, SHELL_RECORD).read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None

    return python if python.is_absolute() and python.exists() else None
