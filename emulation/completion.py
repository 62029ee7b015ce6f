"""Shell completion of options' values: names in lists, keys of experiments, files of ours."""

import os
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from fattree.policies import POLICIES, POLICY_SETS
from fattree.texts.shipped import names

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
# Set by the shells' scripts, that click writes.
VARIABLE = "_OFAN_COMPLETE"


def _beginning(candidates: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in candidates if word.startswith(incomplete)]


def complete_policies(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the last of several load balancers, by those that are not named yet."""
    front, comma, last = incomplete.rpartition(",")
    named = front.split(",")
    more = [slug for slug in POLICIES if slug not in named]
    candidates = more if comma else [*more, *POLICY_SETS]
    return [CompletionItem(f"{front}{comma}{word.value}") for word in _beginning(candidates, last)]


def complete_key(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete KEY= of an experiment."""
    from fattree.texts.schema import described, rows  # noqa: PLC0415  # a tenth of a second

    keys = (f"{row.table}.{row.key}" if row.table else row.key for row in rows(described()))
    return _beginning((f"{key}=" for key in keys), incomplete)


def complete_file_of_ours(
    _context: click.Context, _argument: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of an experiment or example that comes with Ofan."""
    return _beginning(names(), incomplete)


OF_OPTIONS: dict[str, Completion] = {"--policies": complete_policies, "--set": complete_key}


def complete_at_once() -> bool:
    """Answer a shell without the command's module, which may take a second to import.

    Return False where the command has to answer.
    """
    shell, _, instruction = os.environ.get(VARIABLE, "").partition("_")
    answering = get_completion_class(shell) if instruction == "complete" else None
    if answering is None:
        return False

    shell_complete = answering(click.Group(), {}, "ofan", VARIABLE)
    arguments, incomplete = shell_complete.get_completion_args()
    if arguments and arguments[-1] in OF_OPTIONS:
        complete = OF_OPTIONS[arguments[-1]]
    elif arguments[:1] == ["experiments"] and len(arguments) == 2 and incomplete[:1] != "-":
        complete = complete_file_of_ours
    else:
        return False

    items = complete(click.Context(click.Group()), click.Option(["--value"]), incomplete)
    click.echo("\n".join(map(shell_complete.format_completion, items)))
    return True
