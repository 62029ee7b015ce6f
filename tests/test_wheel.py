"""Wheels, of Ofan beside PyPI's `fabric` and of the P4 tools alone, used by anybody anywhere."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import ofan
from fattree.texts.shipped import names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(ofan.__file__).parent
NOBODY = 65534
# Fixed by the project's users; others must not be names that people have.
TOP_LEVEL = {
    "ofan": {"controller", "emulation", "fattree", "hostagent", "ofan.py", "p4src"}
    | {"reproduction", "sim"},
    "ofan-p4": {"ofan_cache", "ofan_p4", "p4messages"},
}
# Both distributions, by the name of their wheel.
PROJECTS = {"ofan": ROOT / "pyproject.toml", "ofan_p4": ROOT / "p4tools/pyproject.toml"}
# Packages that the P4 tools do not need, and their largest size with all that they need.
HEAVY = {"distributed", "matplotlib", "mininet", "numba", "polars", "pydantic", "scapy", "tornado"}
MOST_BYTES = 350 << 20
NO_INDEX = "no package index answers"
SMALL = ("--message-bytes", "16KiB")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Yield a folder that everybody can enter, unlike pytest's own."""
    with TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def wheels(place: Path) -> dict[str, Path]:
    """The wheels of this tree, built from a copy: setuptools would leave files in this one."""
    source = place / "source"
    left_out = shutil.ignore_patterns(
        ".*", "build", "results", "tests", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=left_out, symlinks=True)
    projects = (source / "p4tools", source)
    build = ("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", place / "wheels", *projects)
    subprocess.run([sys.executable, "-m", "pip", *map(str, build)], check=True)
    return {path.name.partition("-")[0]: path for path in (place / "wheels").glob("*.whl")}


def test_experiments_and_programs_travel(wheels: dict[str, Path]) -> None:
    packed = set(ZipFile(wheels["ofan"]).namelist())
    for name in names():
        assert {f"fattree/experiments/{name}", f"fattree/experiments/{name}.toml"} & packed
    for source in (ROOT / "p4src").rglob("*.p4"):
        assert source.relative_to(ROOT).as_posix() in packed


def test_no_name_clashes_with_what_others_have(wheels: dict[str, Path]) -> None:
    packed = {name: ZipFile(path).namelist() for name, path in wheels.items()}
    tops = {
        name.replace("_", "-"): {file_names.partition("/")[0] for file_names in files}
        for name, files in packed.items()
    }
    tops_of_wheels = {
        name: {top for top in file_names if ".dist-info" not in top}
        for name, file_names in tops.items()
    }
    assert tops_of_wheels == TOP_LEVEL
    assert not [name for name in packed["ofan"] if name.startswith("p4tools")]


def test_both_have_one_version_and_one_licence() -> None:
    projects = {name: tomllib.loads(path.read_text()) for name, path in PROJECTS.items()}
    versions = {name: project["project"]["version"] for name, project in projects.items()}
    assert versions["ofan"] == versions["ofan_p4"]
    assert f"ofan-p4=={versions['ofan']}" in projects["ofan"]["project"]["dependencies"]
    licence, licence_of_tools = (
        path.with_name("LICENSE").read_bytes() for path in PROJECTS.values()
    )
    assert licence == licence_of_tools


def test_the_p4_tools_declare_what_they_import() -> None:
    """Statically: imports in functions count, too."""
    folder = PROJECTS["ofan_p4"].parent
    nodes = [
        node for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))
    ]
    tops_of_wheels = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    tops_of_wheels |= {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    tops = {name.partition(".")[0] for name in tops_of_wheels} - sys.stdlib_module_names
    project = tomllib.loads(PROJECTS["ofan_p4"].read_text())["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["pcap"]]
    named = {Requirement(line).name for line in declared}
    # Two distributions have modules of another name: P4Runtime's and Google's messages.
    modules = named - {"googleapis-common-protos", "grpcio", "p4runtime", "protobuf"}
    assert tops - TOP_LEVEL["ofan-p4"] == modules | {"google", "grpc", "p4"}
    assert not HEAVY & {Requirement(line).name for line in project["dependencies"]}


def new_environment(folder: Path, *packages: str | Path) -> Path:
    """Return the programs of a new environment that has something; skip where no index answers."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    asked = subprocess.run(
        [*pip, "--dry-run", "--no-deps", "fabric"], env=clean, capture_output=True, check=False
    )
    if asked.returncode:
        pytest.skip(NO_INDEX)

    subprocess.run([*pip, "--no-compile", *map(str, packages)], env=clean, check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(place: Path, wheels: dict[str, Path]) -> Path:
    """The `ofan` of an environment with both wheels, their dependencies, and `fabric`."""
    return new_environment(place / "environment", *wheels.values(), "fabric") / "ofan"


@pytest.fixture
def desk(place: Path, request: pytest.FixtureRequest) -> Path:
    """An empty folder of nobody's."""
    folder = place / str(request.node.name)
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)

    return folder


def somebody(folder: Path) -> dict[str, Any]:
    """Return how a process is started in a folder as nobody, or as who we are if not root."""
    drop = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return {"cwd": folder, "env": {"PATH": os.defpath, "HOME": str(folder)}, "text": True, **drop}


def run(command: Sequence[str | Path], folder: Path, said: str = "") -> str:
    """Run a command in a folder as nobody (`somebody`), told something; return stdout."""
    done = subprocess.run(
        list(map(str, command)),
        input=said,
        capture_output=True,
        timeout=300,
        check=False,
        **somebody(folder),
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return str(done.stdout)


@contextmanager
def started(switch: Path, folder: Path) -> Iterator[str]:
    """Run `softswitch` with ofan.json, until it is no longer needed; yield its Thrift port."""
    command = [str(switch), "ofan.json", "--thrift-port", "0"]
    command += ["--", "--grpc-server-addr", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **somebody(folder)) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        assert "ready on 127.0.0.1:" in lines[1], lines
        yield lines[0].rpartition(":")[2].strip()
        process.terminate()

    assert process.returncode == 0


COMMANDS = (
    ("demo",),
    ("experiments", "list"),
    ("emulate", "demo", *SMALL),
    ("emulate", "--program", "two_choices.p4", "--policies", "jsq", *SMALL),
    ("sim", "run", "demo", *SMALL),
    ("sim", "sweep", "sweep.toml", "--k", "2", "--seeds", "1", "--jobs", "2"),
    ("compare", "demo", *SMALL),
    ("p4", "compile", "p4src/ofan.p4", "-o", "ofan.json"),
    ("p4", "stf", "router.p4"),
    ("p4", "trace", "router.p4", "--entries", "router.stf"),
    ("doctor",),
    ("report", "--quick", "--figure", "invariant", "--output", "report"),
)
# A user's changes of a copy.
OWN = (
    ("experiments", "copy", "p4src"),
    ("emulate", "mine.toml", "--program", "mine.p4", *SMALL),
    ("p4", "compile", "mine.p4", "-I", "p4src/include", "-o", "mine.json"),
)


# One test, so that one worker installs: a minute, and another for kernels that nobody has compiled.
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_wheel_serves_anybody_anywhere(installed: Path, desk: Path) -> None:
    python = installed.parent / "python"
    said = run([python, "-c", "import fabric, sim; print(fabric.Connection.__module__)"], desk)
    assert said == "fabric.connection\n"
    for command in COMMANDS:
        run([installed, *command], desk)

    run([installed, "experiments", "copy", "two_choices.p4", "demo"], desk)
    (desk / "two_choices.p4").rename(desk / "mine.p4")
    (desk / "demo.toml").rename(desk / "mine.toml")
    for command in OWN:
        run([installed, *command], desk)

    kept = (
        "results/demo/demo.png",
        "results/demo_mine/comparison.png",
        "ofan.json",
        "mine.json",
        "report/index.html",
    )
    assert [name for name in kept if not (desk / name).is_file()] == []


def bytes_in(folder: Path) -> int:
    """Return how much a folder takes on disk."""
    return sum(512 * path.lstat().st_blocks for path in folder.rglob("*"))


# Some 170 programs on two engines: a minute.
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_p4_tools_serve_anybody_by_themselves(
    place: Path, wheels: dict[str, Path], desk: Path
) -> None:
    """In an empty environment: they compile a program of ours, run the switch, pass all cases."""
    tools = new_environment(place / "p4", wheels["ofan_p4"])
    assert bytes_in(place / "p4") < MOST_BYTES
    absent = [*HEAVY, "emulation", "fattree", "ofan", "sim"]
    find = f"import importlib.util as u; print([n for n in {absent} if u.find_spec(n)])"
    assert run([tools / "python", "-c", find], desk) == "[]\n"

    shutil.copytree(ROOT / "p4src", place / "p4src")
    shutil.copytree(ROOT / "tests/emulation/compiler/cases", place / "cases")
    program, includes = place / "p4src" / "ofan.p4", place / "p4src" / "include"
    files = ("-o", "ofan.json", "--p4runtime-files", "ofan.txtpb")
    run([tools / "ofan-p4", "compile", program, "-I", includes, *files], desk)
    said = run([tools / "ofan-p4", "stf", place / "cases"], desk)
    assert re.fullmatch(r"(\d{3}) passed, 0 failed, 0 unsupported\n", said), said
    assert "packet 1" in run(
        [tools / "ofan-p4", "trace", place / "cases/tables.p4", "--packet", "010012340a0b0c00"],
        desk,
    )

    names_of_bmv2 = desk / "names"
    run([tools / "ofan-p4", "install-names", names_of_bmv2], desk)
    with started(tools / "softswitch", desk) as port:
        filled = run(
            [names_of_bmv2 / "simple_switch_CLI", "--thrift-port", port], desk, "show_tables\n"
        )
        assert "[implementation=" in filled, filled
