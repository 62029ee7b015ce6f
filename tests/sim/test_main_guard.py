"""A script without a main guard learns how to write it; a script with a guard runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from sim.sweeps.main_guard import is_guarded

SWEEP = """\
from sim import Scenario, sweep

{guard}
    print(len(sweep([Scenario(seed=n, fabric={{"k": 2}}) for n in (1, 2)], jobs=2)))
"""


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ('import sim\nif __name__ == "__main__":\n    sim.sweep([])\n', 3, True),
        ('if "__main__" == __name__: go()\n', 1, True),
        ("import sim\nsim.sweep([])\n", 2, False),
        ("if True:\n    go()\n", 2, False),
        ("def main():\n    go()\n\nmain()\n", 4, False),
        ("PK\x03\x04 no Python", 1, True),
    ],
)
def test_the_statement_that_runs_is_a_guard(text: str, line: int, expected: bool) -> None:
    assert is_guarded(text, line) is expected


def test_a_script_without_a_guard_is_told_so_at_once(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(SWEEP.format(guard="if True:"))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert f"{script}, line 4: jobs > 1 starts processes" in done.stderr
    assert 'if __name__ == "__main__":' in done.stderr
    assert "Traceback" not in done.stderr


ASKING = """\
from sim.sweeps.main_guard import refuse_unguarded

if __name__ == "__main__":
    refuse_unguarded()
    print("goes on")
"""


def test_a_script_with_a_guard_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(ASKING)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("goes on\n", 0), done.stderr


@pytest.mark.parametrize("how", ["-c", "-m"])
def test_what_no_process_imports_again_goes_on(tmp_path: Path, how: str) -> None:
    # Text of the command line has no file, and a package is run by its name.
    text = "from sim.sweeps.main_guard import refuse_unguarded; refuse_unguarded(); print('on')"
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "__main__.py").write_text(text)
    done = subprocess.run(
        [sys.executable, how, text if how == "-c" else "study"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("on\n", 0), done.stderr


@pytest.mark.slow
def test_a_script_with_a_guard_runs(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(SWEEP.format(guard='if __name__ == "__main__":'))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr
