"""How our processes start others of ours, so that no file of anybody else's is ever run.

Most of them run as root, in whatever folder their user stands: Python would look there for modules
first, then in what PYTHONPATH names, and in the home that the environment names; and libraries look
there for their settings. Imports nothing but the standard library, as `ofan doctor` needs it where
nothing else can be imported.
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

# The folder that our packages are in: a checkout, or where `pip` has put them.
ROOT = Path(__file__).resolve().parents[1]

# Of an installation, beside its Python: which interpreter has p4runtime-shell (setup.sh).
SHELL_RECORD = "ofan-shell"

# What a process of ours needs to know of its surroundings; OFAN_ are names of our own.
KEPT = frozenset({"LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "SUDO_UID", "SUDO_GID"})
# What a terminal can show, and what shells ask to complete a word.
TERMINAL = frozenset({"COLUMNS", "LINES", "COLORTERM", "NO_COLOR", "FORCE_COLOR"})
COMPLETION = frozenset({"_OFAN_COMPLETE", "COMP_WORDS", "COMP_CWORD"})
OURS = "OFAN_"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The folders of the caller's PATH in which root's process does not look for programs.
UNSEARCHED = "OFAN_UNSEARCHED"

# `-I` leaves out the current folder, PYTHON* variables and the user's own packages. What is left is
# the installation, and, for a checkout that another one is installed over, the root.
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

    # An empty or relative entry stands for a folder that depends on where one is.
    folders = [name for name in os.environ.get("PATH", PATH).split(":") if os.path.isabs(name)]
    if os.geteuid() == 0:
        others = [name for name in folders if os.path.isdir(name) and not is_roots(name)]
        folders = [os.path.realpath(name) for name in folders if is_roots(name)]
        folders = folders or list(filter(is_roots, PATH.split(":")))
        # A process that has been given a clean environment sees none of them any more.
        kept |= {UNSEARCHED: ":".join(others)} if others else {}

    return {**kept, "PATH": ":".join(folders) or PATH, "HOME": _home()}


def is_roots(folder: str) -> bool:
    """Return whether root alone can put files into a folder, or another one in its place."""
    path = Path(os.path.realpath(folder))
    try:
        places = [(each.stat(), each) for each in (path, *path.parents)]
    except OSError:
        return False

    for found, place in places:
        is_writable = found.st_mode & stat.S_IWOTH or (
            found.st_mode & stat.S_IWGRP and found.st_gid != 0
        )
        # In a folder as /tmp nobody can replace what is root's.
        is_safe = not is_writable or (place != path and found.st_mode & stat.S_ISVTX)
        if found.st_uid != 0 or not is_safe:
            return False

    return True


def unsearched_folders() -> list[str]:
    """Return the folders of the caller's PATH in which root's process does not look."""
    return [name for name in os.environ.get(UNSEARCHED, "").split(":") if name]


def _home() -> str:
    # Of who we are, not of who called: `sudo` may keep the caller's.
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


@contextmanager
def clean() -> Iterator[None]:
    """Give this process the clean environment for a while, for what libraries start."""
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
    """Imports some libraries from the root folder: they read settings from the current one."""

    # numba: .numba_config.yaml. Matplotlib: matplotlibrc. Both can name modules to import. Mininet
    # imports distutils, and setuptools asks for pybuilddir.txt.
    LIBRARIES = ("numba", "matplotlib", "mininet")

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module of theirs, None for any other."""
        if name.partition(".")[0] not in self.LIBRARIES:
            return None

        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            # Of this one loader, which is made for this module.
            loader: Any = spec.loader
            loader.exec_module = _elsewhere(loader.exec_module)

        return spec


def _elsewhere(load: Any) -> Any:
    def exec_module(module: ModuleType) -> None:
        with elsewhere():
            load(module)

        # numba looks again whenever it compiles: there is never anything in this file.
        if settings := sys.modules.get("numba.core.config"):
            vars(settings)["_config_fname"] = os.devnull

    return exec_module


def shut_out_others() -> None:
    """Let root's process heed nothing that the caller's variables or current folder say."""
    if os.geteuid() != 0:
        return

    cleaned = clean_environment()
    os.environ.clear()
    os.environ.update(cleaned)
    if not any(isinstance(finder, Elsewhere) for finder in sys.meta_path):
        sys.meta_path.insert(0, Elsewhere())


def dask_setup(_worker: object) -> None:
    """Do the same in a process of Dask's, before it imports what it runs: Dask calls this."""
    shut_out_others()


def shell_python() -> Path | None:
    """Return the interpreter that has p4runtime-shell, as setup recorded it.

    None where there is none.
    """
    try:
        found = Path(Path(sys.prefix, SHELL_RECORD).read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None

    return found if found.is_absolute() and found.exists() else None
