"""One connection, and the register of commands that run on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ofan_p4.runtime_cli.names import InputError, Names
from ofan_p4.softswitch.daemon.thrift.rpc import Client

Lines = Iterator[str]


@dataclass(frozen=True, slots=True)
class Session:
    """A switch's services and the names of its program."""

    client: Client
    names: Names

    def standard(self, method: str, **arguments: Any) -> Any:
        """Call a method of the service that every BMv2 has."""
        return self.client.call(f"standard:{method}", **arguments)

    def multicast(self, method: str, **arguments: Any) -> Any:
        """Call a method of the replication engine."""
        return self.client.call(f"simple_pre_lag:{method}", **arguments)

    def target(self, method: str, **arguments: Any) -> Any:
        """Call a method of simple_switch's own service."""
        return self.client.call(f"simple_switch:{method}", **arguments)


# A command that prints nothing returns None.
Run = Callable[[Session, list[str]], Lines | None]
R = TypeVar("R", bound=Run)


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its usage line, its least and greatest number of words, and its function."""

    usage: str
    least: int
    most: int | None
    run: Run

    def __call__(self, session: Session, tokens: list[str]) -> Lines:
        """Return the lines that the command prints; InputError for too few or too many words."""
        if len(tokens) < self.least or (self.most is not None and len(tokens) > self.most):
            raise InputError(f"usage: {self.usage}")

        return self.run(session, tokens) or iter(())


COMMANDS: dict[str, Command] = {}


def command(usage: str) -> Callable[[R], R]:
    """Register a command; <words> must be there, [words] may be, ... means any number."""

    def register(run: R) -> R:
        name, *arguments = usage.split()
        minimum = sum(word.startswith("<") for word in arguments)
        maximum = None if "..." in arguments else sum(word[0] in "<[" for word in arguments)
        COMMANDS[name] = Command(usage, minimum, maximum, run)
        return run

    return register
