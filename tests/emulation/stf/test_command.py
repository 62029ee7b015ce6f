"""`ofan p4 stf`: files and folders, exit codes, JSON, time limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from ofan_p4.stf.cases import Verdict
from ofan_p4.stf.cli import stf_command
from ofan_p4.stf.worker import run_cases

Case = Callable[..., tuple[Path, Path]]
GOOD = "packet 1 00\n"
BAD = "packet 1 00\nexpect 1 00\n"
ODD = "dance\n"


def run(*args: object) -> Result:
    return CliRunner().invoke(stf_command, [str(arg) for arg in args])


def test_one_test_says_how_it_went(case: Case) -> None:
    program, script = case(GOOD)
    result = run(program)

    assert (result.exit_code, result.output) == (0, f"PASSED {script}\n")


def test_a_folder_is_summed_up_and_only_what_did_not_pass_is_shown(
    case: Case, tmp_path: Path
) -> None:
    for name, script in (("a", GOOD), ("b", BAD), ("c", ODD)):
        case(script, name)

    result = run(tmp_path)

    assert result.exit_code == 1
    assert [line.split()[0] for line in result.output.splitlines()] == [
        "FAILED",
        "UNSUPPORTED",
        "1",
    ]
    assert result.output.endswith("1 passed, 1 failed, 1 unsupported\n")


def test_exit_code_2_where_nothing_failed_but_something_is_unsupported(
    case: Case, tmp_path: Path
) -> None:
    case(GOOD, "a")
    case(ODD, "c")
    result = run(tmp_path, "--json")
    verdicts = json.loads(result.stdout)

    assert result.exit_code == 2
    assert (verdicts["passed"], verdicts["failed"], verdicts["unsupported"]) == (1, 0, 1)
    assert [Path(item["script"]).name for item in verdicts["cases"]] == ["a.stf", "c.stf"]


def test_match_chooses_programs_by_their_text(case: Case, tmp_path: Path) -> None:
    case(GOOD, "a")
    case(BAD, "b", body="hdr.ethernet.setInvalid();")

    assert run(tmp_path, "--match", "setInvalid").output.endswith(
        "0 passed, 1 failed, 0 unsupported\n"
    )
    assert run(tmp_path, "--match", "nothing").exit_code == 2


def test_a_script_that_is_not_there_is_one_line(case: Case, tmp_path: Path) -> None:
    program, script = case(GOOD)
    script.unlink()
    result = run(program)

    assert result.exit_code == 2
    assert f"there is no {script}" in result.output


def test_a_test_that_takes_too_long_fails_and_the_next_one_runs(case: Case) -> None:
    slow = case("wait\n" * 3_000_000, "slow")
    verdicts = list(run_cases([slow, case(GOOD, "good")], 0.4))

    assert verdicts[0] == Verdict(
        str(slow[0]), str(slow[1]), "failed", "no result within 0.4 s", 0.4
    )
    assert verdicts[1].status in ("passed", "failed")
