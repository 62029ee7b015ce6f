"""The names of `sim`, which are imported when they are first used."""

import subprocess
import sys

import pytest

import sim


def test_every_public_name_has_a_module() -> None:
    assert set(sim.MODULES) == set(sim.__all__) <= set(dir(sim))
    for name, module in sim.MODULES.items():
        assert getattr(sim, name) is getattr(sys.modules[module], name)


def test_a_mistyped_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="module 'sim' has no attribute 'runn'"):
        getattr(sim, "runn")  # noqa: B009  # mypy would refuse sim.runn

    with pytest.raises(ImportError, match="runn"):
        exec("from sim import runn")


def test_a_name_imports_no_other_name() -> None:
    script = (
        "import sys\nfrom sim import Scenario\n"
        "print([name for name in sys.modules if name.startswith('sim.')])\n"
        "from sim import *\nimport sim.runs.engine\n"
        "print(run is sim.run is sim.runs.engine.run, choose.__module__)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\nTrue sim.choice.choosing\n"
