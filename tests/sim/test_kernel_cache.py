"""Where compiled kernels are kept: code that is loaded and run, so never where others can write."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from sim.kernels.jit import KERNEL_MODULES, KERNEL_ROOMS, ROOT
from tests.sim.imports import import_closure

SHOW = "from sim.kernels.jit import CACHE; print(CACHE.folder); print(CACHE.note)"


def cache(home: Path, temporary: Path) -> tuple[str, str]:
    """Return the cache's folder and note in a fresh process."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    }
    variables |= {"HOME": str(home), "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    folder, note, *_ = [*done.stdout.splitlines(), ""]
    return folder, note


def test_kernels_are_kept_in_the_users_cache(tmp_path: Path) -> None:
    folder, note = cache(tmp_path, tmp_path)
    assert folder.startswith(f"{tmp_path}/.cache/ofan/") and note == ""


@pytest.fixture
def no_home(tmp_path: Path) -> Path:
    """Return a home in which no user, root included, can make a folder."""
    (tmp_path / "home").write_text("")
    return tmp_path / "home"


def test_without_a_home_they_are_kept_in_a_private_folder(no_home: Path, tmp_path: Path) -> None:
    folder, note = cache(no_home, tmp_path)
    private = tmp_path / f"ofan-{os.getuid()}"
    assert folder.startswith(f"{private}/") and private.stat().st_mode & 0o777 == 0o700
    assert note.endswith(f"keeping compiled code in {private}")


@pytest.mark.parametrize("kind", ["open to others", "a link"])
def test_a_folder_that_others_may_have_filled_is_refused(
    no_home: Path, tmp_path: Path, kind: str
) -> None:
    private = tmp_path / f"ofan-{os.getuid()}"
    if kind == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        private.symlink_to("elsewhere")
    else:
        private.mkdir()
        private.chmod(0o777)
    folder, note = cache(no_home, tmp_path)
    assert folder == "None" and "not this user's alone" in note and list(private.iterdir()) == []


RUN = "from sim.programs.callbacks import draw_function; print(draw_function().cache_hits)"


def run(home: Path, **variables: str) -> str:
    """Compile a C function, or load it; return the output."""
    environment = {"HOME": str(home), "PATH": os.defpath, **variables}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the function's code is kept."""
    home = tmp_path_factory.mktemp("home")
    assert run(home) == "0\n"
    return home


def test_code_with_bounds_checks_is_kept_apart(filled: Path) -> None:
    """Code kept without them would not check, and code kept with them would be slow."""
    assert [run(filled, NUMBA_BOUNDSCHECK="1") for _ in range(2)] == ["0\n", "1\n"]
    assert run(filled, NUMBA_BOUNDSCHECK="0") == "1\n"


class Trap:
    """Makes a file as soon as it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.file), "w")


def test_kernels_are_loaded_but_not_unpickled_where_others_could_write(
    filled: Path, tmp_path: Path
) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    assert run(tmp_path) == "1\n"
    for file in (tmp_path / ".cache/ofan/kernels").glob("*/*.nb*"):
        file.write_bytes(pickle.dumps(Trap(tmp_path / "trapped")))
    assert run(tmp_path) == "0\n"
    assert not (tmp_path / "trapped").exists()


def test_numbas_own_cache_stays_where_it_is() -> None:
    assert os.environ.get("NUMBA_CACHE_DIR", "") == numba.config.CACHE_DIR


def test_every_module_of_kernels_names_the_cache() -> None:
    needed = import_closure("sim/kernels/events/windows.py")
    assert needed <= set(KERNEL_MODULES)
    # Beside them only modules that share a room with them.
    assert {Path(path).parent.as_posix() for path in set(KERNEL_MODULES) - needed} <= {
        *KERNEL_ROOMS
    }


LONG = """
from functools import partial
from sim.kernels.jit import kernel

@partial(kernel, long_name="what takes long")
def following(number):
    return number + 1

print(following(1))
"""


def test_whoever_waits_for_a_compilation_is_told_once(tmp_path: Path) -> None:
    module = tmp_path / "long.py"
    module.write_text(LONG)
    environment = {"HOME": str(tmp_path), "PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    done = [
        subprocess.run(
            [sys.executable, str(module)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    assert [process.stdout for process in done] == ["2\n", "2\n"]
    told = "compiling what takes long, once (up to a minute) ...\n"
    assert [process.stderr for process in done] == [told, ""]


SIGNS_OF_LIFE = """
import threading
from numba.extending import overload
from fattree import signs_of_life
from sim.kernels.jit import kernel

signs_of_life.EVERY_S = 0.01

def following(number):
    return number + reminded(number)

def reminded(number):
    return number

# Compiling this waits for two signs of life: one need not mean that more will come.
@overload(reminded)
def _reminded(number):
    if not {fails}:
        while len(told) < 3:
            changed.wait()
            changed.clear()
        return lambda number: number

told, changed = [], threading.Event()
write = signs_of_life.tell

def note(line):
    write(line)
    told.append(line)
    changed.set()

signs_of_life.tell = note
following = kernel(following, long_name="what takes long")
try:
    print(following(1))
except Exception as error:
    print(type(error).__name__)

# It ends with what it tells of.
for thread in threading.enumerate():
    if thread.daemon:
        thread.join()
"""


@pytest.mark.parametrize(("fails", "printed"), [(False, "2"), (True, "TypingError")])
def test_a_long_compilation_gives_signs_of_life_to_its_end(
    fails: bool, printed: str, tmp_path: Path
) -> None:
    module = tmp_path / "longer.py"
    module.write_text(SIGNS_OF_LIFE.replace("{fails}", str(fails)))
    environment = {"HOME": str(tmp_path), "PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(module)], env=environment, capture_output=True, text=True, check=True
    )

    lines = done.stderr.splitlines()
    assert lines[0] == "compiling what takes long, once (up to a minute) ..."
    assert all(line.startswith("still compiling what takes long, for ") for line in lines[1:])
    assert fails or len(lines) >= 3
    assert done.stdout.splitlines()[0] == printed
