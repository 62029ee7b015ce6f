"""Options of commands in groups: frozen dataclasses that have a field for each option."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any


def grouped(**groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command have its options in groups, each under the keyword of its dataclass."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_groups(**options: Any) -> None:
            for name, group in groups.items():
                values = {field.name: options.pop(field.name) for field in fields(group)}
                options[name] = group(**values)

            command(**options)

        return with_groups

    return decorated


@dataclass(frozen=True, slots=True)
class Asked:
    """The experiment of a command line: the file, its overrides, the user's own files."""

    file: Path | None
    policies: tuple[str, ...]
    settings: tuple[str, ...]
    host_rule: Path | None
    agent_packet: Path | None
    like: str | None


@dataclass(frozen=True, slots=True)
class Written:
    """The results folder, and the form in which a command writes its rows to stdout or a file."""

    output: Path | None
    as_json: bool
    csv: Path | None
    force: bool
