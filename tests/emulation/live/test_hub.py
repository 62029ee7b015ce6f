"""One source for many viewers: who looks, who is too slow, and how it ends."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from emulation.held.client import ControlError
from emulation.live.hub import HISTORY, Hub
from emulation.live.virtual_source import VirtualSource
from fattree.experiment.model import Collective, Fabric, Scenario

SCENARIO = Scenario(fabric=Fabric(k=4), collective=Collective(message_bytes=16 * 4096))


class Gone:
    """A held network that has ended."""

    scenario, policies = SCENARIO, {"ofan": "Ofan"}

    def poll(self) -> Any:
        raise ControlError("the emulation ended before it answered")

    def set_link(self, name: str, up: bool) -> None: ...
    def set_rate(self, name: str, rate: float) -> None: ...
    def start(self, policy: str) -> None: ...
    def set_pace(self, factor: float, paused: bool) -> None: ...


def within(seconds: float, work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, seconds))


@pytest.fixture
def source() -> VirtualSource:
    return VirtualSource(SCENARIO, speed=1e-6)


def test_virtual_time_stands_while_nobody_looks(source: VirtualSource) -> None:
    async def look() -> tuple[int, int]:
        hub = Hub(source)
        task = asyncio.ensure_future(hub.run())
        await asyncio.sleep(0.3)
        before = hub.version
        hub.viewers = 1
        after = await hub.next(0)
        task.cancel()
        hub.close()
        return before, after

    assert within(30, look()) == (0, 1)


def test_a_slow_viewer_misses_snapshots_and_holds_up_nobody(source: VirtualSource) -> None:
    async def look() -> tuple[list[int], int]:
        hub = Hub(source)
        hub.viewers = 2
        task = asyncio.ensure_future(hub.run())
        quick, version = [], 0
        for _ in range(4):
            version = await hub.next(version)
            quick.append(version)
        slow = await hub.next(1)
        task.cancel()
        hub.close()
        return quick, slow

    quick, slow = within(30, look())
    assert quick == [1, 2, 3, 4]
    assert slow == 4


def test_every_viewer_is_told_why_it_ended() -> None:
    async def look() -> tuple[str | None, list[int]]:
        hub = Hub(Gone())
        hub.viewers = 2
        waiting = [asyncio.ensure_future(hub.next(0)) for _ in range(2)]
        await asyncio.sleep(0)
        await hub.run()
        versions = await asyncio.gather(*waiting)
        hub.close()
        return hub.ended, versions

    assert within(30, look()) == ("the emulation ended before it answered", [1, 1])


def test_an_instant_is_kept_once(source: VirtualSource) -> None:
    """Time stands while the run does, and viewers go on looking."""
    hub = Hub(source)
    snapshot = source.snapshot()
    for _ in range(3):
        hub._remember(snapshot)

    assert len(hub.history) == 1
    hub.close()


def test_the_history_is_bounded_and_begins_again_with_the_run(source: VirtualSource) -> None:
    hub = Hub(source)
    first = source.snapshot()
    for time_ps in range(1, HISTORY + 50):
        hub._remember(
            type(first)(
                **{name: getattr(first, name) for name in first.__slots__} | {"time_ps": time_ps}
            )
        )
    assert len(hub.history) == HISTORY
    hub._remember(first)
    assert [time_ps for time_ps, _ in hub.history] == [0]
    hub.close()
