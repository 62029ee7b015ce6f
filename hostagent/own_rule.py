"""A host rule of the user's own: the choice of the next packet's label, and the effect of ACKs.

A Python file with the two functions that `hostagent.transports.labels` has for a scheme, and a
dataclass of integers, an instance for each flow. `hostagent.rule_reader` has the file's language.
Here it is plain Python, for agents and the virtual network; `sim.arrays.host_rule_code` compiles
the same functions.
"""

from ast import Module
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

from fattree.experiment.model import Scenario
from hostagent.rule_reader import evaluated, read_rule
from hostagent.rule_words import LARGEST, NEXT_LABEL, ON_ACK, State
from hostagent.transports.state import Rules

LABEL_MASK = 0xFFFF


def _wrapped(number: int) -> int:
    """Return an integer as 64 bits hold it."""
    return number if -LARGEST <= number <= LARGEST else (number + 2**63) % 2**64 - 2**63


def _shl(number: int, bits: int) -> int:
    return _wrapped(number << bits) if 0 <= bits < 64 else 0


def _shr(number: int, bits: int) -> int:
    return number >> min(bits, 63) if bits >= 0 else 0


# The arithmetic of a rule. A number divided by zero is zero, as there is no error that packets
# could wait for.
PLAIN: dict[str, Callable[..., int]] = {
    "_add": lambda a, b: _wrapped(a + b),
    "_sub": lambda a, b: _wrapped(a - b),
    "_mul": lambda a, b: _wrapped(a * b),
    "_div": lambda a, b: _wrapped(a // b) if b else 0,
    "_mod": lambda a, b: a % b if b else 0,
    "_shl": _shl,
    "_shr": _shr,
    "_neg": lambda a: _wrapped(-a),
    "_inv": lambda a: ~int(a),
    "_abs": lambda a: _wrapped(abs(a)),
    "_int": int,
    "_min": min,
    "_max": max,
}


@dataclass(frozen=True, slots=True, eq=False)
class OwnRule:
    """A rule in plain Python, and its parts.

    `definitions` are all its functions, with helpers (`PLAIN`) in place of arithmetic; `constants`
    are the constants that they use.
    """

    name: str
    state: State
    constants: dict[str, int]
    definitions: Module
    _functions: dict[str, Callable[..., Any]]

    def fresh(self) -> SimpleNamespace:
        """Return the state of a new flow."""
        return SimpleNamespace(
            **{
                name: list(value) if isinstance(value, tuple) else value
                for name, value in self.state.items()
            }
        )

    def next_label(self, state: Any, sender: Any, rules: Rules, packets: Any, now_ps: int) -> int:
        """Return the label of the packet that leaves at `now_ps`."""
        label = self._functions[NEXT_LABEL](state, sender, rules, packets, now_ps)
        return int(label) & LABEL_MASK

    def on_ack(
        self, state: Any, sender: Any, rules: Rules, label: int, marked: bool, now_ps: int
    ) -> None:
        """Learn from an ACK that echoes `label` and whether its data packet was marked."""
        self._functions[ON_ACK](state, sender, rules, label, marked, now_ps)


def scenario_rule(scenario: Scenario) -> OwnRule | None:
    """Return the host rule of the user's that a scenario has, if any; raises ExperimentError."""
    rule = scenario.host_rule
    return own_rule(rule.text, rule.file) if rule else None


@cache
def own_rule(text: str, name: str) -> OwnRule:
    """Read a rule; errors call its file `name`.

    Raises ExperimentError with the line of the error.
    """
    rule = read_rule(text, name, PLAIN)
    functions = evaluated(rule.module, name, {**PLAIN, **rule.constants}, lambda function: function)
    return OwnRule(name, rule.state, rule.constants, rule.module, functions)
