"""Shell completion of options' values: names in lists, keys of experiments, files of ours."""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from fattree.policies import POLICIES, POLICY_SETS
from fattree.texts.shipped import names


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
