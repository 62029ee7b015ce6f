"""Rules of the P4Runtime specification about single updates, as tables of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ofan_p4.softswitch.base.errors import Code
from tests.emulation.softswitch.conformance.peer import Peer, action, entry, exact

OK = Code.OK.name
INVALID = Code.INVALID_ARGUMENT.name
DENIED = Code.PERMISSION_DENIED.name
NOT_FOUND = Code.NOT_FOUND.name
ALREADY_EXISTS = Code.ALREADY_EXISTS.name
OUT_OF_RANGE = Code.OUT_OF_RANGE.name
EXHAUSTED = Code.RESOURCE_EXHAUSTED.name
FAILED_PRECONDITION = Code.FAILED_PRECONDITION.name
UNIMPLEMENTED = Code.UNIMPLEMENTED.name

# An entry that most rules are about, or that must be there for them.
KNOWN = entry("exact_table", exact(5), action("drop"))


class Rule(NamedTuple):
    """After the entities `given` are inserted, the update `kind` of `entity` ends with `code`."""

    words: str
    kind: str
    entity: str
    code: str
    given: Sequence[str]
    section: str = ""

    def name(self) -> str:
        """Return the name of the rule's case."""
        return f"{self.section} {self.words}"


def insert(words: str, entity: str, code: str, given: Sequence[str] = ()) -> Rule:
    """A rule about INSERT."""
    return Rule(words, "INSERT", entity, code, given)


def modify(words: str, entity: str, code: str, given: Sequence[str] = ()) -> Rule:
    """A rule about MODIFY."""
    return Rule(words, "MODIFY", entity, code, given)


def delete(words: str, entity: str, code: str, given: Sequence[str] = ()) -> Rule:
    """A rule about DELETE."""
    return Rule(words, "DELETE", entity, code, given)


def section(number: str, *rules: Rule) -> list[Rule]:
    """Return the rules of a section, which know its number."""
    return [rule._replace(section=number) for rule in rules]


def outcome(rule: Rule) -> str:
    """Return the code with which the update of a rule ends, on a switch of its own."""
    peer = Peer()
    for entity in rule.given:
        peer.write(("INSERT", entity))

    return peer.code(rule.kind, rule.entity)
