"""The numbers of a user's host rule, and how many rounds it takes, by hand."""

import ast

from hostagent.rule_rounds import Rounds
from sim.arrays import host_rule_code


def test_divisions_of_rules_are_python_s() -> None:
    # In machine code and in plain Python; where Python has no answer, the answer is ours.
    for above in (-(2**63), -7, 0, 7, 2**63 - 1):
        for below in (-3, 2, 7):
            assert host_rule_code._div(above, below) == above // below

        assert host_rule_code._div(above, 0) == 0


def test_loops_of_rules_begin_at_nought() -> None:
    def rounds(times: int) -> int:
        body = ast.parse(f"for step in range({times}):\n    state.hash += step").body
        return Rounds({}, {}, {}).of(body)

    assert rounds(3) == 3
