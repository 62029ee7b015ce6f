"""One source, many viewers: a thread polls the source while there are viewers."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from emulation.errors import EmulationError
from emulation.held.client import ControlError
from emulation.live.model import Snapshot
from emulation.live.source import Source

FRAMES_A_SECOND = 10
HISTORY = 400
Point = tuple[int, list[float]]


class Hub:
    """Shares a source: a single thread polls and commands it, so that sources need no locks.

    `version` counts snapshots; `ended` is the reason for the last one. Virtual time stands without
    viewers.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.latest: Snapshot | None = None
        self.version = 0
        self.ended: str | None = None
        self.viewers = 0
        self._history: deque[Point] = deque(maxlen=HISTORY)
        self._changed = asyncio.Condition()

        # One thread, because a source is no place for two; a thread, because polling takes long and
        # the event loop serves others meanwhile.
        self._worker = ThreadPoolExecutor(1, "source")

    @property
    def history(self) -> list[Point]:
        """Return (time, longest queue of every tier) of the last snapshots."""
        return list(self._history)

    async def call(self, action: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the source's thread; raises the function's errors."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, action, *arguments)

    async def run(self) -> None:
        """Poll until the source has ended."""
        while self.ended is None:
            if self.viewers:
                await self._poll()

            await asyncio.sleep(1 / FRAMES_A_SECOND)

    async def _poll(self) -> None:
        try:
            self.latest = await self.call(self.source.poll)
        except (EmulationError, ControlError) as error:
            self.ended = str(error)
        else:
            self._remember(self.latest)

        await self._tell()

    async def end(self, reason: str) -> None:
        """Tell all viewers that there will be no more snapshots."""
        self.ended = self.ended or reason
        await self._tell()

    async def _tell(self) -> None:
        self.version += 1
        async with self._changed:
            self._changed.notify_all()

    def _remember(self, snapshot: Snapshot) -> None:
        # Time that goes back is a new run; time that stands has nothing to add.
        if self._history and snapshot.time_ps < self._history[-1][0]:
            self._history.clear()

        if not self._history or snapshot.time_ps > self._history[-1][0]:
            self._history.append((snapshot.time_ps, [tier.queue for tier in snapshot.tiers]))

    async def next(self, version: int) -> int:
        """Wait for a snapshot later than `version`; return its own."""
        # Any later snapshot, not the next: a slow viewer misses some.
        async with self._changed:
            await self._changed.wait_for(lambda: self.version > version)

        return self.version

    def close(self) -> None:
        """End the source's thread."""
        self._worker.shutdown(wait=True, cancel_futures=True)
