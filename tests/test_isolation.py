"""Files of other users never run: in the folder, in PYTHONPATH, in HOME."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostagent.isolation import clean_environment, is_roots, python_command, shell_python

# Modules that Python or our programs import early, some of them before any line of ours.
NAMES = ("selectors", "json", "socket", "usercustomize", "sitecustomize", "hostagent", "click")
USER_SITE = f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """Return a file that every planted program would make."""
    return tmp_path / "trapped"


@pytest.fixture
def surroundings(
    tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """Plant programs wherever Python might look, and stand among them."""
    here = tmp_path / "here"
    path = tmp_path / "path"
    home = tmp_path / "home"
    for folder in (here, path, home / USER_SITE):
        folder.mkdir(parents=True)
        for name in NAMES:
            (folder / f"{name}.py").write_text(
                f"open({str(trap)!r}, 'a').write({name!r} + ' in {folder.name}\\n')"
            )

    for program in (here / ".venv-shell" / "bin" / "python", here / "ip", here / "unshare"):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {program.name} >>{trap}\n")
        program.chmod(0o755)

    monkeypatch.chdir(here)
    for name, value in (("HOME", home), ("PYTHONPATH", path), ("PYTHONSTARTUP", here / "json.py")):
        monkeypatch.setenv(name, str(value))

    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    yield dict(os.environ)


def run(*command: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=env, timeout=120
    )
    return done.stdout + done.stderr


def caught(trap: Path) -> str:
    return trap.read_text() if trap.exists() else ""


def test_the_traps_work(surroundings: dict[str, str], trap: Path) -> None:
    run(sys.executable, "-m", "hostagent.agents.agent", "0")
    assert "in here" in caught(trap)
    assert "in path" in caught(trap)


def test_no_process_of_ours_looks_for_modules_where_it_stands(
    surroundings: dict[str, str],
) -> None:
    paths = run(sys.executable, "-I", "-c", "import sys; print(*sys.path, sep='\\n')")
    assert [path for path in paths.splitlines() if not path.startswith("/")] == []


SETTINGS = """
import os
from hostagent.isolation import Elsewhere, sys
sys.meta_path.insert(0, Elsewhere())
import matplotlib, numba
numba.njit(lambda: 0)()
print(matplotlib.rcParams["lines.linewidth"], numba.config.SHOW_HELP, os.getcwd())
"""


def test_libraries_take_no_settings_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 7\n")
    (tmp_path / ".numba_config.yaml").write_text("show_help: 1\n")
    unguarded = run(sys.executable, "-I", "-c", SETTINGS.replace("sys.meta_path", "[]"))
    assert unguarded == f"7.0 1 {tmp_path}\n"
    assert run(sys.executable, "-I", "-c", SETTINGS) == f"1.5 0 {tmp_path}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others keep their variables")
def test_as_root_the_command_heeds_no_variable_of_the_callers(
    surroundings: dict[str, str], trap: Path
) -> None:
    show = "import os; from click import echo; echo(sorted(os.environ))"
    script = f"import ofan; ofan.main = lambda: exec({show!r}); ofan.start()"
    shown = run(sys.executable, "-I", "-c", script, env=surroundings | {"SOMETHING": "else"})
    assert "HOME" in shown
    assert "PYTHON" not in shown and "SOMETHING" not in shown
    assert caught(trap) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others keep their variables")
def test_as_root_a_command_that_python_has_not_isolated_begins_anew(tmp_path: Path) -> None:
    # As pip installs it: Python heeds its variables until we are asked.
    (tmp_path / "tornado.py").write_text("raise SystemExit('trapped')")
    script = "import sys, ofan; sys.argv = ['ofan', 'serve', '--help']; ofan.start()"
    environment = {"PYTHONPATH": str(tmp_path), "PATH": os.defpath}
    assert "trapped" in run(sys.executable, "-c", "import tornado", env=environment)
    assert run(sys.executable, "-c", script, env=environment).startswith("Usage: ofan serve")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others keep their variables")
def test_as_root_the_p4_tools_begin_anew_as_well(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise SystemExit('trapped')")
    script = "import sys; from ofan_p4.cli import start; sys.argv[1:] = ['stf', '--help']; start()"
    environment = {"PYTHONPATH": str(tmp_path), "PATH": os.defpath}
    assert "trapped" in run(sys.executable, "-c", "import rich", env=environment)
    assert run(sys.executable, "-c", script, env=environment).startswith("Usage: ofan-p4 stf")


def test_installed_names_run_nothing_planted(
    surroundings: dict[str, str], trap: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "names"
    assert "p4c" in run(*python_command("ofan", "p4", "install-names", str(folder)))
    assert run(str(folder / "p4c"), "--version").startswith("p4c-bm2-ss (Ofan)\nVersion ")
    assert run(str(folder / "simple_switch_grpc"), "--json-version") == "2.23\n"
    assert run(str(folder / "simple_switch_CLI"), "--help").startswith("usage: simple_switch_CLI")
    assert caught(trap) == ""


@pytest.mark.parametrize("module", ["hostagent.agents.agent", "emulation.mininet.children", "ofan"])
def test_no_planted_module_runs_in_a_process_of_ours(
    surroundings: dict[str, str], trap: Path, module: str
) -> None:
    # No such descriptor: the program has been imported, says so and ends.
    run(*python_command(module, "999"), env=clean_environment())
    assert caught(trap) == ""


def test_doctor_runs_no_interpreter_or_program_of_the_folder(
    surroundings: dict[str, str], trap: Path
) -> None:
    said = run(*python_command("ofan", "doctor"))
    assert "p4runtime-shell" in said
    assert caught(trap) == ""


def test_the_shell_is_the_one_that_setup_recorded(
    surroundings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert shell_python() is None
    (tmp_path / "ofan-shell").write_text("here/.venv-shell/bin/python\n")
    assert shell_python() is None, "a relative path depends on where one stands"
    (tmp_path / "ofan-shell").write_text(f"{sys.executable}\n")
    assert shell_python() == Path(sys.executable)


def test_the_environment_has_nothing_of_the_callers(surroundings: dict[str, str]) -> None:
    clean = clean_environment()
    assert not [name for name in clean if name.startswith("PYTHON")]
    assert clean["HOME"] != surroundings["HOME"]
    folders = [name for name in surroundings["PATH"].split(":") if name.startswith("/")]
    if os.geteuid() == 0:
        folders = [os.path.realpath(name) for name in folders if is_roots(name)]

    assert clean["PATH"].split(":") == folders


@pytest.fixture
def program_folder() -> Iterator[Path]:
    """Yield a folder of root's, with a folder for programs that pytest's own folders are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        programs = Path(folder) / "bin"
        programs.mkdir()
        yield programs


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="others can change no owner")


@needs_root
def test_a_folder_is_roots_if_root_alone_can_write_it_and_all_above_it(
    program_folder: Path,
) -> None:
    assert is_roots(str(program_folder))
    assert not is_roots("/tmp")
    assert not is_roots(str(program_folder / "none"))
    for folder in (program_folder, program_folder.parent):
        for mode in (0o777, 0o757):
            folder.chmod(mode)
            assert not is_roots(str(program_folder))

        folder.chmod(0o775)
        os.chown(folder, 0, 65534)
        assert not is_roots(str(program_folder))
        folder.chmod(0o755)
        assert is_roots(str(program_folder))
        os.chown(folder, 65534, 0)
        assert not is_roots(str(program_folder))
        os.chown(folder, 0, 0)


@needs_root
def test_root_runs_no_program_from_a_folder_of_others_and_doctor_names_it(
    program_folder: Path, trap: Path
) -> None:
    for name in ("ip", "unshare", "tc"):
        (program_folder / name).write_text(f"#!/bin/sh\necho {name} >>{trap}\nexit 1\n")
        (program_folder / name).chmod(0o755)

    program_folder.chmod(0o777)
    path = f"{program_folder}:{os.environ['PATH']}"
    answer = json.loads(run(*python_command("ofan", "doctor", "--json"), env={"PATH": path}))
    assert not caught(trap)
    (finding,) = [item for item in answer["findings"] if item["name"] == "folders of PATH"]
    assert not finding["is_here"]
    assert str(program_folder) in finding["found"]
