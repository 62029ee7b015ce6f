"""As root, amid files of somebody else's, commands look for nothing that is not ours.

Watched from outside: no name that Python, a library or a child looks for in the current folder, or
where the caller's variables lead, is left out, be there such a file or not.
"""

import os
import shutil
import signal
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hostagent.agents.process import NOBODY
from tests.clients.test_public_clients import SHELL_PYTHON, address, folder
from tests.watching import STRACE, asked_for, watched

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(STRACE is None, reason="needs strace"),
]
__all__ = ["address", "folder"]
OFAN = Path(sys.executable).with_name("ofan")
# Folders below the current folder: those that commands write to by default, and those that the
# tests' commands name.
OWN = ("results", "build", "demo", "p4src")
PLACES = (
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "NUMBA_CACHE_DIR",
    "DASK_CONFIG",
    "DASK_ROOT_CONFIG",
    "DASK_TEMPORARY_DIRECTORY",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "PYTHONPYCACHEPREFIX",
    "MPLCONFIGDIR",
    "MATPLOTLIBRC",
    "IPYTHONDIR",
    "TMPDIR",
)
MODULE = "trap"
VARIABLES = {
    "NUMBA_CACHE_LOCATOR_CLASSES": f"{MODULE}.Locator",
    "DASK_DISTRIBUTED__WORKER__PRELOAD": MODULE,
    "DASK_DISTRIBUTED__NANNY__PRELOAD": MODULE,
    "PYTHONBREAKPOINT": f"{MODULE}.stop",
    "PYTHONSTARTUP": f"{MODULE}.py",
    "PYTHONWARNINGS": f"default::{MODULE}.Warning",
    "PYTHONINSPECT": "1",
    "MPLBACKEND": f"module://{MODULE}",
}
SLOW_LINKS = ("--set", "fabric.rate_gbps=0.0016", "--set", "fabric.latency_ns=6e6")
ON_MININET = ("emulate", "demo", "--network", "mininet", *SLOW_LINKS)
SMALL = ("--message-bytes", "16KiB", "--k", "4")


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder of user `nobody`, with a folder of modules and settings for each variable.

    Not pytest's own, which is root's alone.
    """
    with TemporaryDirectory(dir="/tmp") as name:
        root = Path(name)
        plant_modules(root / "here", root / "trapped")
        for folder in PLACES:
            plant_settings(root / folder, root / "trapped")
        for path in (root, *root.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

        root.chmod(0o755)
        yield root


def plant_modules(folder: Path, trap: Path) -> None:
    """Fill a folder with modules of every likely name, which leave a trace if they run."""
    plant_settings(folder, trap)
    names = {*sys.stdlib_module_names, *third_party(), "usercustomize", "apport_python_hook"}
    for name in names:
        shutil.copyfile(folder / f"{MODULE}.py", folder / f"{name}.py")

    # Where the import hook of an editable install looked.
    hook = folder / "__editable__.ofan-0.3.0.finder.__path_hook__"
    plant_settings(hook, trap)


def plant_settings(folder: Path, trap: Path) -> None:
    """Put settings, programs and a module that they name into a folder."""
    folder.mkdir()
    for name in (MODULE, "sitecustomize", "usercustomize", "apport_python_hook"):
        (folder / f"{name}.py").write_text(f"open({str(trap)!r}, 'a').write(__file__)")

    (folder / ".numba_config.yaml").write_text("cache_locator_classes: trap.Locator\n")
    (folder / "matplotlibrc").write_text("backend: module://trap\n")
    (folder / "distributed.yaml").write_text("distributed: {worker: {preload: [trap]}}\n")
    (folder / ".config" / "dask").mkdir(parents=True)
    (folder / ".config" / "dask" / "dask.yaml").write_text("distributed: {nanny: {preload: trap}}")
    for program in ("ip", "tc", "unshare", "ethtool", "mnexec", "sh", "p4c"):
        (folder / program).write_text(f"#!/bin/sh\necho {program} >>{trap}\n")
        (folder / program).chmod(0o755)


def third_party() -> set[str]:
    """Return the names that can be imported beside the standard library, ours included."""
    folders = [Path(name) for name in sys.path if Path(name).is_dir()]
    stems = {path.stem for folder in folders for path in folder.iterdir()}
    return {stem for stem in stems if stem.isidentifier()}


def environment(place: Path) -> dict[str, str]:
    """Return variables that lead to folders of user `nobody`."""
    path = f".::{os.environ['PATH']}"
    return VARIABLES | {"PATH": path} | {name: str(place / name) for name in PLACES}


def theirs(place: Path, log: Path) -> list[str]:
    """Return the calls for files of user `nobody`, but for results and named files."""
    here = place / "here"
    own_paths = {here / name for name in OWN}
    return sorted(
        {
            f"{call} {path}"
            for call, path in asked_for(log, here)
            if place in path.parents and not own_paths & {path, *path.parents}
            # To stand in the folder, and to look it up, is to read nothing.
            if path != here or call in ("open", "openat")
        }
    )


def run(place: Path, log: Path, *arguments: str) -> str:
    """Run a command to its end among the files of user `nobody`; return its output."""
    with watched([OFAN, *arguments], log, place / "here", environment(place)) as process:
        said, _ = process.communicate(timeout=600)

    assert process.returncode == 0, said
    return said


LONG = (
    ("sim", "run", *SMALL, "--seeds", "2", "--jobs", "2"),
    (*ON_MININET, "--policies", "ofan", "--message-bytes", "16KiB", "--set", "fabric.k=2"),
    ("emulate", "demo", "--policies", "ofan", "--message-bytes", "16KiB"),
    ("demo",),
    ("report", "--quick", "--output", "build/report"),
)
COMMANDS = (
    ("doctor",),
    ("p4", "compile", "p4src/ofan.p4", "-o", "build/ofan.json"),
    *(pytest.param(arguments, marks=pytest.mark.slow) for arguments in LONG),
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: "-".join(arguments[:3]))
def test_a_command_asks_for_nothing_of_theirs(place: Path, tmp_path: Path, arguments) -> None:
    (place / "here" / "build").mkdir()
    run(place, tmp_path / "log", *arguments)
    assert theirs(place, tmp_path / "log") == []
    assert not (place / "trapped").exists()


@pytest.mark.slow
def test_serve_asks_for_nothing_of_theirs(place: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [OFAN, "serve", "demo", "--policies", "ofan", "--message-bytes", "16KiB"]
    with watched(command, log, place / "here", environment(place)) as process:
        assert process.stdout is not None
        address = next(word for line in process.stdout for word in line.split() if "http" in word)
        with urllib.request.urlopen(address) as page:
            assert b"<html" in page.read()

        time.sleep(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    assert theirs(place, log) == []
    assert not (place / "trapped").exists()


SHELL = """
from emulation.held.cli import Path, become_shell
become_shell(Path({python!r}), {arguments!r})
"""


@pytest.mark.slow
@pytest.mark.skipif(not SHELL_PYTHON.exists(), reason="p4runtime-shell is not installed")
def test_the_shell_asks_for_nothing_of_theirs(
    place: Path, tmp_path: Path, folder: Path, address: str
) -> None:
    log = tmp_path / "log"
    program = f"{folder}/ofan.txtpb,{folder}/ofan.json"
    arguments = ["--grpc-addr", address, "--device-id", "1", "--election-id", "1,0"]
    script = SHELL.format(python=str(SHELL_PYTHON), arguments=[*arguments, "--config", program])
    python = [sys.executable, "-I", "-c", script]
    with watched(python, log, place / "here", environment(place)) as process:
        said, _ = process.communicate(timeout=60)

    assert "Welcome to the IPython shell" in said, said
    assert theirs(place, log) == []
    assert not (place / "trapped").exists()


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ("import sys; sys.path.append(''); import nothing_of_that_name", "openat {}/here"),
        ("import sys; sys.path.append('relative'); import nothing", "newfstatat {}/here/relative"),
        ("import os; os.path.exists('settings')", "newfstatat {}/here/settings"),
        ("import matplotlib", "newfstatat {}/here/matplotlibrc"),
        ("import subprocess; subprocess.call(['sh', '-c', ''])", "execve {}/here/sh"),
    ],
)
def test_the_watch_sees_what_is_asked_for(
    place: Path, tmp_path: Path, script: str, seen: str
) -> None:
    log = tmp_path / "log"
    python = [sys.executable, "-I", "-c", script]
    with watched(python, log, place / "here", environment(place)) as process:
        process.communicate(timeout=60)

    assert seen.format(place) in theirs(place, log)
