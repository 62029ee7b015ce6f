"""The faults on Mininet: how each is made, how it is detected, and its runs."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from benchmarks.fault_cases.measuring import (
    CORE_LINK,
    Sample,
    agent_dies,
    connection_is_cut,
    controller_dies,
    link_fails,
    link_flaps,
    links_fail,
    rival_takes_over,
    switch_dies,
)
from emulation.errors import EmulationError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.fabric import MininetFabric
from fattree.experiment.model import (
    Collective,
    Controller,
    Fabric,
    Scenario,
)

ATTEMPTS = 3
EDGE_LINK = "edge0_0-agg0_1"


@dataclass(frozen=True, slots=True)
class Case:
    """A fault: its cause, the network that meets it, and the measurement of a run."""

    fault: str
    injected: str
    controller: Controller
    measure: Callable[[MininetFabric], Sample]
    packets: int = 45

    @property
    def mode(self) -> str:
        """Return the column that says how failures are detected."""
        interval_us = self.controller.probe_interval_us
        detection = self.controller.detection
        damped = ", damped" if self.controller.damping_half_life_us else ""

        return f"{detection} ({interval_us / 1000:g} ms x 3)" if interval_us else detection + damped


def scenario(case: Case) -> Scenario:
    """Return k = 4 with Ofan, 49 packets a second and host: software switches keep up with that."""
    return Scenario(
        policy="ofan",
        fabric=Fabric(k=4, rate_gbps=0.0016, latency_ns=6e6),
        collective=Collective(message_bytes=case.packets * 4096),
        controller=case.controller,
    )


PROBE = Controller(detection="probe", probe_interval_us=100_000)
ANNOUNCED = Controller()
NETLINK = Controller(detection="netlink")
TEN = (
    *(f"edge{pod}_{edge}-agg{pod}_0" for pod in range(4) for edge in range(2)),
    "agg0_1-core1_0",
    "agg3_1-core1_0",
)
CASES = (
    Case(
        "core link fails",
        "`ip link set down`, both ends",
        ANNOUNCED,
        partial(link_fails, CORE_LINK),
    ),
    Case("core link fails", "the same", NETLINK, partial(link_fails, CORE_LINK)),
    Case("core link fails", "the same", PROBE, partial(link_fails, CORE_LINK)),
    Case("edge link fails", "the same", ANNOUNCED, partial(link_fails, EDGE_LINK)),
    Case("edge link fails", "the same", NETLINK, partial(link_fails, EDGE_LINK)),
    Case("edge link fails", "the same", PROBE, partial(link_fails, EDGE_LINK)),
    Case(
        "10 of 32 links fail within a second",
        injected="the same, every 100 ms",
        controller=NETLINK,
        measure=partial(links_fail, TEN),
        packets=70,
    ),
    Case(
        "core link flaps at 10 Hz for 1 s",
        injected="down and up every 50 ms",
        controller=NETLINK,
        measure=link_flaps,
        packets=80,
    ),
    Case(
        "core link flaps at 10 Hz for 1 s",
        injected="the same",
        controller=Controller(detection="netlink", damping_half_life_us=500_000),
        measure=link_flaps,
        packets=80,
    ),
    Case(
        "core switch killed, restarted",
        injected="SIGKILL; the emulation starts it again",
        controller=ANNOUNCED,
        measure=switch_dies,
        packets=90,
    ),
    Case(
        "core switch killed, restarted",
        injected="the same",
        controller=PROBE,
        measure=switch_dies,
        packets=90,
    ),
    Case(
        "controller killed, restarted",
        "all its state forgotten, sessions dropped",
        ANNOUNCED,
        controller_dies,
    ),
    Case(
        "connection to a switch cut for 500 ms",
        injected="session closed; a link of it fails meanwhile",
        controller=ANNOUNCED,
        measure=connection_is_cut,
        packets=70,
    ),
    Case(
        "second controller takes over, leaves",
        injected="a higher election id for 400 ms",
        controller=ANNOUNCED,
        measure=rival_takes_over,
        packets=70,
    ),
    Case("host agent killed", "SIGKILL; the run ends and names it", ANNOUNCED, agent_dies),
)


@contextmanager
def network(case: Case) -> Iterator[MininetFabric]:
    """Bring up a case's network in a folder of its own, so that it meets no other emulation."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mininet_fabric(scenario(case), Setup(folder=Path(folder) / "ofan")) as fabric,
    ):
        yield fabric


def samples(case: Case, runs: int) -> list[Sample]:
    """Measure a case; an agent's death takes the network with it, all others share one."""
    if case.measure is agent_dies:
        rows = []
        for _ in range(runs):
            with network(case) as fabric:
                rows.append(case.measure(fabric))

        return rows

    with network(case) as fabric:
        return [measured(case, fabric) for _ in range(runs)]


def measured(case: Case, fabric: MininetFabric) -> Sample:
    """Measure once; a run that a busy machine has kept from its end is said and done again."""
    attempts = iter(range(ATTEMPTS))
    while True:
        with suppress(EmulationError) if next(attempts) < ATTEMPTS - 1 else nullcontext():
            return case.measure(fabric)

        click.echo(f"{case.fault}: once more", err=True)
