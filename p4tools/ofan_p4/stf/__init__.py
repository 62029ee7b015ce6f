"""STF tests of P4 programs, in the format of p4c's own suite, on our compiler and our switch.

    verdict = run_case(Path("router.p4"), Path("router.stf"))
    verdict.status      "passed", "failed" or "unsupported"
    verdict.detail      why, with the line of the script

One module each: `script` reads the format, `bench` runs a script's commands (with `names`,
`matching` and `multicast`, which turn a script's words into the switch's objects), `compare` and
`dissect` find where a packet differs, `cases` judges one test and `worker` many, each within a time
limit. `cli` and `trace_command` are the two commands.
"""

from ofan_p4.stf.cases import Verdict, find_cases, run_case
from ofan_p4.stf.script import Script, ScriptError, parse_script

__all__ = ["Script", "ScriptError", "Verdict", "find_cases", "parse_script", "run_case"]
