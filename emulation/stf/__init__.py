"""Tests of P4 programs in the STF format of the P4 compiler's own suite, run on our compiler and
our switch.

    verdict = run_case(Path("router.p4"), Path("router.stf"))
    verdict.status      "passed", "failed" or "unsupported"
    verdict.detail      why, with the line of the script

One module each: `script` reads the format, `bench` does what a script says, `matching` writes
matches as the tables keep them, `compare` and `dissect` say where a packet differs, `cases` judges
one test and `worker` many, each within a time limit.
"""

from emulation.stf.cases import Verdict, find_cases, run_case
from emulation.stf.script import Script, ScriptError, parse_script

__all__ = ["Script", "ScriptError", "Verdict", "find_cases", "parse_script", "run_case"]
