"""Cycles of ports that wait for each other: a deadlock has a cycle."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Waiting = TypeVar("Waiting", bound=Hashable)


def cycle(waits: Mapping[Waiting, Iterable[Waiting]]) -> list[Waiting]:
    """Return a cycle in which each member waits for the next, empty where there is none."""
    done: set[Waiting] = set()
    for first in waits:
        # Depth first, without recursion: on the way are those with waits that are not through.
        way: list[Waiting] = []
        open_ = [(first, iter(waits[first]))] if first not in done else []
        on_way = set()
        if open_:
            way.append(first)
            on_way.add(first)

        while open_:
            node, rest = open_[-1]
            following = next((awaited for awaited in rest if awaited not in done), None)
            if following is None:
                open_.pop()
                on_way.discard(way.pop())
                done.add(node)
            elif following in on_way:
                return way[way.index(following) :]
            else:
                way.append(following)
                on_way.add(following)
                open_.append((following, iter(waits.get(following, ()))))

    return []
