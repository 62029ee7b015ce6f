"""A wheel, installed beside PyPI's `fabric` in an empty environment, used by anybody anywhere."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

import ofan
from fattree.shipped import names

ROOT = Path(ofan.__file__).parent
NOBODY = 65534
# Fixed by the project's users; others must not be names that people have.
TOP_LEVEL = {"controller", "emulation", "fattree", "hostagent", "ofan.py", "ofan_cache"} | {
    "p4messages",
    "p4src",
}
NO_INDEX = "no package index answers"
SMALL = ("--message-bytes", "16KiB")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Yield a folder that everybody can enter, unlike pytest's own."""
    with TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def wheel(place: Path) -> Path:
    """A wheel of the working tree, built from a copy: setuptools would leave files in this one."""
    source = place / "source"
    left_out = shutil.ignore_patterns(
        ".*", "build", "results", "tests", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=left_out, symlinks=True)
    build = ("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", place / "wheels", source)
    subprocess.run([sys.executable, "-m", "pip", *map(str, build)], check=True)
    return next((place / "wheels").glob("ofan-*.whl"))


def test_experiments_and_programs_travel(wheel: Path) -> None:
    packed = set(ZipFile(wheel).namelist())
    for name in names():
        assert {f"fattree/experiments/{name}", f"fattree/experiments/{name}.toml"} & packed
    for source in (ROOT / "p4src").rglob("*.p4"):
        assert source.relative_to(ROOT).as_posix() in packed


def test_no_name_clashes_with_what_others_have(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in ZipFile(wheel).namelist()}
    assert {top for top in tops if ".dist-info" not in top} == TOP_LEVEL | {"sim"}


@pytest.fixture(scope="module")
def installed(place: Path, wheel: Path) -> Path:
    """The `ofan` of an environment with the wheel, what it depends on, and `fabric`."""
    environment = place / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [str(environment / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    asked = subprocess.run(
        [*pip, "--dry-run", "--no-deps", "fabric"], env=clean, capture_output=True, check=False
    )
    if asked.returncode:
        pytest.skip(NO_INDEX)

    subprocess.run([*pip, "--no-compile", str(wheel), "fabric"], env=clean, check=True)
    return environment / "bin" / "ofan"


@pytest.fixture
def desk(place: Path, request: pytest.FixtureRequest) -> Path:
    """An empty folder of nobody's."""
    folder = place / str(request.node.name)
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)

    return folder


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Run a command in a folder as nobody, or as who we are where we cannot be; return stdout."""
    drop = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **drop,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return str(done.stdout)


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
# What somebody makes of a copy.
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
