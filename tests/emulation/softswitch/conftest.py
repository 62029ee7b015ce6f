"""Programs to build, and switches that run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.emulation.softswitch.bench import Bench, Controller
from tests.emulation.softswitch.bmv2_json import Bmv2
from tests.emulation.softswitch.p4infos import p4info_of


@pytest.fixture
def program() -> Bmv2:
    """An empty program."""
    return Bmv2()


@pytest.fixture
def new_program() -> Callable[[], Bmv2]:
    """The way to begin a program, for tests that need several."""
    return Bmv2


@pytest.fixture
def bench() -> Callable[..., Bench]:
    """The way to run a program."""
    return Bench


@pytest.fixture
def control() -> Callable[..., Controller]:
    """The way to control a program: a bench and its controller, which has set the pipeline."""

    def start(program: Bmv2, cpu_port: int | None = None, **more: Any) -> Controller:
        controller = Controller(Bench(program, cpu_port=cpu_port), p4info_of(program))
        if more:
            more["edit"](controller.p4info)
        controller.set_pipeline(program.source())

        return controller

    return start
