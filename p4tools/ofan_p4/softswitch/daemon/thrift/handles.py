"""Numbers under which the runtime API knows things: the lowest free place, as in BMv2."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from enum import IntEnum
from typing import Generic, TypeVar

from ofan_p4.softswitch.daemon.thrift.messages import Refusal

K = TypeVar("K", bound=Hashable)
# A handle is a place and how often that place has been given back.
PLACE_BITS = 24
MOST_VERSIONS = 1 << 7


class Handles(Generic[K]):
    """Handles of keys; `invalid` is the error for a handle without a key."""

    def __init__(self, invalid: IntEnum, expired: IntEnum | None = None) -> None:
        self._invalid = invalid
        self._expired = expired
        self._keys: dict[int, K] = {}
        self._handles: dict[K, int] = {}
        self._versions: list[int] = []
        self._free: list[int] = []

    def __contains__(self, key: K) -> bool:
        """Return whether a key has a handle."""
        return key in self._handles

    def __iter__(self) -> Iterator[tuple[int, K]]:
        """Iterate over (handle, key)."""
        return iter(self._keys.items())

    def add(self, key: K) -> int:
        """Return a new handle for a key."""
        if self._free:
            index = heapq.heappop(self._free)
        else:
            index = len(self._versions)
            self._versions.append(0)

        handle = self._versions[index] << PLACE_BITS | index
        self._keys[handle] = key
        self._handles[key] = handle
        return handle

    def key(self, handle: int) -> K:
        """Return the key of a handle, or raise Refusal."""
        if handle in self._keys:
            return self._keys[handle]

        index = handle & (1 << PLACE_BITS) - 1
        is_old = handle >= 0 and index < len(self._versions) and self._expired is not None
        raise Refusal(self._expired if is_old and self._expired else self._invalid)

    def handle(self, key: K) -> int:
        """Return the handle of a known key."""
        return self._handles[key]

    def remove(self, key: K) -> None:
        """Give the handle of a key back."""
        handle = self._handles.pop(key)
        del self._keys[handle]
        index = handle & (1 << PLACE_BITS) - 1
        # Without versions, a handle that was given back is soon another's.
        if self._expired is not None:
            self._versions[index] = (self._versions[index] + 1) % MOST_VERSIONS

        heapq.heappush(self._free, index)
