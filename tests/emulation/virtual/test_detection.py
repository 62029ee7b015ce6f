"""Failure detection by the controller of a virtual network: by probes, or by announcements; and
its damping of flaps.
"""

from random import Random
from typing import Any

import pytest

import sim
from emulation.errors import UnsupportedError
from emulation.mininet.detection import refuse_too_many_probes
from emulation.outcomes.outcome import Outcome
from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from fattree.errors import ExperimentError
from fattree.experiment.model import (
    Collective,
    Controller,
    Fabric,
    FailureEvent,
    Failures,
    Scenario,
)
from fattree.routes.failures import outages
from fattree.routes.probed import probed
from fattree.shape.addressing import link_name
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_US
from sim.arrays.network import build
from tests.parity.drawing import one_in
from tests.parity.engines import assert_same, native
from tests.python_network.fabric import PythonFabric

LINK = "agg0_0-core0_0"
PROBING = Controller(detection="probe", probe_interval_us=1, probe_misses=3)


def scenario(controller: Controller, *events: FailureEvent, **settings: Any) -> Scenario:
    failures = Failures(events=events, convergence_rtt=settings.pop("convergence_rtt", 0))
    collective = Collective(message_bytes=settings.pop("packets", 40) * 4096)
    fabric = Fabric(k=4, rate_gbps=settings.pop("rate_gbps", 800))
    return Scenario(
        fabric=fabric,
        collective=collective,
        seed=3,
        failures=failures,
        controller=controller,
        **settings,
    )


def ran(case: Scenario) -> tuple[VirtualFabric, Outcome]:
    """Run on machine code; the Python network finds the same, at the same times.

    The simulator does too, with kernels and with programs, where no packet is a probe.
    """
    fabric, judge = native(case), PythonFabric(case)
    outcome = fabric.run()
    assert_same(outcome, judge.run())
    # Convergences compare by identity.
    assert list(map(repr, fabric.installations)) == list(map(repr, judge.installations))
    for result in (sim.run(case), simulated.run(case)):
        assert result.done_ps.tolist() == [flow.done_ps for flow in outcome.flows]
        assert result.ports.lost_to_failure.sum() == outcome.accounts.lost

    return fabric, outcome


@pytest.mark.parametrize(("misses", "interval_us"), [(1, 1), (3, 1), (2, 2)])
def test_probes_find_a_dead_link_after_as_many_intervals_as_may_miss(
    interval_us: float, misses: int
) -> None:
    probing = Controller(detection="probe", probe_interval_us=interval_us, probe_misses=misses)
    fabric, outcome = ran(
        scenario(probing, FailureEvent(link=LINK, down_ns=4_321), convergence_rtt=0.1)
    )
    (installation,) = fabric.installations
    assert [link_name(FatTree(4), link) for link in installation.change.down] == [LINK]
    latency_ps = fabric.scenario.latency_ps
    waited_ps = installation.detected_ps - 4_321_000
    assert (
        misses * interval_us * PS_PER_US
        <= waited_ps
        <= (misses + 1) * interval_us * PS_PER_US + 2 * latency_ps
    )
    convergence_ps = fabric.scenario.convergence_ps
    assert convergence_ps is not None
    assert installation.installed_ps == installation.detected_ps + convergence_ps
    assert outcome.accounts.lost > 0 and outcome.accounts.unaccounted == 0


def test_probes_find_out_that_a_link_is_back() -> None:
    fabric, _ = ran(
        scenario(PROBING, FailureEvent(link=LINK, down_ns=4_000, up_ns=12_000), packets=80)
    )
    down, up = fabric.installations
    assert down.change.down == up.change.up
    assert 12_000_000 + 3 * PS_PER_US <= up.detected_ps <= 12_000_000 + 5 * PS_PER_US
    assert fabric.controller.failed == frozenset()


def test_probes_disturb_no_data() -> None:
    _, probing = ran(scenario(PROBING))
    _, plain = ran(scenario(Controller()))
    assert probing.digest == plain.digest and probing.accounts == plain.accounts


def test_the_more_often_probes_are_sent_the_less_is_lost() -> None:
    # Long enough, and slow enough, for few packets to be sent all the while.
    slow = {"packets": 128, "rate_gbps": 200}
    event = FailureEvent(link=LINK, down_ns=4_000)
    lost = []
    for interval_us in (1, 3):
        probing = Controller(detection="probe", probe_interval_us=interval_us)
        lost.append(ran(scenario(probing, event, **slow))[1].accounts.lost)
    _, told = ran(scenario(Controller(), event, **slow))
    assert told.accounts.lost < lost[0] < lost[1]


def test_a_link_that_fails_at_the_start_is_found_too() -> None:
    fabric, _ = ran(scenario(PROBING, FailureEvent(link=LINK, down_ns=0)))
    (installation,) = fabric.installations
    assert installation.failed_ps == 0 < installation.detected_ps


@pytest.mark.parametrize("policy", ["host_dr", "jsq"])
def test_other_load_balancers_recover_by_probes(policy: str) -> None:
    chosen = scenario(PROBING, FailureEvent(link="edge0_0-agg0_1", down_ns=4_000), policy=policy)
    fabric, outcome = ran(chosen)
    assert fabric.installations and outcome.accounts.unaccounted == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"fabric": {"buffer": "shared", "queue_bytes": 100_000}},
        {"fabric": {"planes": 2}},
        {"fabric": {"queue_bytes": 30_000}, "transport": {"trimming": True}},
        {"failures": {"local_repair": True}},
        {"failures": {"losses": [{"link": "agg1_0-core0_1", "share": 0.01}]}},
        {"failures": {"degraded": [{"link": "agg1_1-core1_1", "rate": 0.5, "at_ns": 6_000}]}},
    ],
    ids=str,
)
def test_probes_find_failures_on_every_kind_of_fabric(settings: dict[str, Any]) -> None:
    events = (
        FailureEvent(link=LINK, down_ns=4_000, up_ns=14_000),
        FailureEvent(switch="core1_0", down_ns=6_000),
    )
    tables = scenario(PROBING, *events, convergence_rtt=0.5).model_dump()
    for table, keys in settings.items():
        tables[table] |= keys
    fabric, _ = ran(Scenario.model_validate(tables))
    assert fabric.installations


def flapping(controller: Controller, flaps: int = 8) -> VirtualFabric:
    """Run with a link that flaps every 2 us."""
    events = [
        FailureEvent(link=LINK, down_ns=2_000 * n + 1_000, up_ns=2_000 * n + 2_000)
        for n in range(flaps)
    ]
    return ran(scenario(controller, *events, packets=80, rate_gbps=200))[0]


def test_damping_spares_the_switches_a_flapping_link() -> None:
    plain = flapping(Controller())
    damped = flapping(Controller(damping_half_life_us=4, damping_suppress=2))
    updates = [sum(change.updates for change in fabric.installations) for fabric in (plain, damped)]
    assert updates[1] < updates[0] / 2
    assert damped.controller.failed == plain.controller.failed == frozenset(), (
        "it is used again when it has been quiet"
    )
    released = damped.installations[-1]
    assert released.change.up and released.detected_ps > 15_000_000 + 4_000_000


def test_the_simulator_refuses_a_kernels_messages() -> None:
    with pytest.raises(ExperimentError, match='detection = "netlink": simulated links have no'):
        build(scenario(Controller(detection="netlink")))


def test_probes_that_real_switches_could_not_keep_up_with_are_refused() -> None:
    hasty = Controller(detection="probe", probe_interval_us=1_000)
    with pytest.raises(
        UnsupportedError,
        match=r"64,000 probes/s .* at least --set controller.probe_interval_us=12800",
    ):
        refuse_too_many_probes(scenario(hasty))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_simulator_with_programs_probes_as_the_virtual_network_does(threads: int) -> None:
    probed = scenario(PROBING, FailureEvent(link=LINK, down_ns=4_321), convergence_rtt=0.1)
    outcome = native(probed).run()
    result = simulated.run(probed, threads=threads)
    assert result.scenario == probed
    assert result.done_ps.tolist() == [flow.done_ps for flow in outcome.flows]
    assert result.ports.lost_to_failure.sum() == outcome.accounts.lost > 0


@pytest.mark.parametrize("shift_ns", [-1, 0, 1])
@pytest.mark.parametrize("edge", one_in(2, ["down", "up"]))
def test_a_probe_that_starts_as_a_link_changes(edge: str, shift_ns: int) -> None:
    """Probes start each whole microsecond: as the link is down, they are lost; as it is up, not."""
    down_ns, up_ns = (6_000 + shift_ns, 9_300) if edge == "down" else (3_300, 6_000 + shift_ns)
    event = FailureEvent(link=LINK, down_ns=down_ns, up_ns=up_ns)
    fabric, _ = ran(scenario(PROBING, event, convergence_rtt=0.1, packets=200))
    if edge == "up":
        return

    # Lost with the probe of 6 us, or not: an interval of difference.
    detected_ps = fabric.installations[0].detected_ps
    event = FailureEvent(link=LINK, down_ns=6_500)
    late = scenario(PROBING, event, convergence_rtt=0.1, packets=200)
    later_ps = ran(late)[0].installations[0].detected_ps
    assert later_ps - detected_ps == (0 if shift_ns > 0 else PS_PER_US)


@pytest.mark.parametrize("seed", one_in(3, range(12)))
def test_the_simulator_knows_when_probes_find_drawn_failures(seed: int) -> None:
    """Quiet times, which the simulator skips, are between the failures; links are slow at times."""
    draw = Random(seed)
    tree = FatTree(4)
    events: list[FailureEvent] = []
    for link in draw.sample(range(tree.links), 3):
        down_ns = draw.randrange(200_000)
        # One link may stay down: two could leave a flow without a path.
        up_ns = down_ns + draw.randrange(1, 40_000) if events or draw.random() < 0.5 else None
        events.append(FailureEvent(link=link_name(tree, link), down_ns=down_ns, up_ns=up_ns))

    probing = Controller(
        detection="probe",
        probe_interval_us=draw.choice([1, 2.5, 7]),
        probe_misses=draw.choice([2, 3]),
    )
    slow_ns = draw.randrange(100_000)
    degraded = {"link": "agg1_1-core1_1", "rate": draw.choice([0.01, 0.5]), "at_ns": slow_ns}
    tables = scenario(
        probing, *events, rate_gbps=10, packets=60, convergence_rtt=draw.choice([0, 0.5])
    ).model_dump()
    tables["failures"]["degraded"] = [degraded]
    case = Scenario.model_validate(tables)
    fabric = native(case)
    outcome = fabric.run()
    result = sim.run(case)
    assert result.done_ps.tolist() == [flow.done_ps for flow in outcome.flows]
    assert result.ports.lost_to_failure.sum() == outcome.accounts.lost
    changes = probed(case, outages(fabric.line.changes), [c.time_ps for c in fabric.line.changes])
    installed = [
        (seen.detected_ps, seen.change.down, seen.change.up) for seen in fabric.installations
    ]
    assert installed == list(changes)[: len(installed)]
    assert installed


@pytest.mark.parametrize("interval_us", [0.500599, 0.5006, 0.500601])
def test_a_probe_that_arrives_as_the_next_one_leaves_is_heard_first(interval_us: float) -> None:
    """60 bytes at 800 Gb/s and 500 ns of latency are 0.5006 us."""
    probing = Controller(detection="probe", probe_interval_us=interval_us, probe_misses=2)
    ran(scenario(probing, FailureEvent(link=LINK, down_ns=4_321), convergence_rtt=0.1))
