"""Real processes and real failures: who notices, who goes on, and which traces remain."""

import os
import signal
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from controller.fabric_controller import LinkChange
from controller.fleet import Fleet
from emulation.errors import EmulationError, NetworkError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.run import Run
from fattree.experiment.model import Scenario
from fattree.shape.addressing import link_named, switch_named
from fattree.units import PS_PER_MS

pytestmark = [pytest.mark.root, pytest.mark.slow]
LINK = "agg0_0-core0_0"
PATIENCE_SECONDS = 60


def scenario(packets=40, **controller):
    return Scenario(
        policy="ofan",
        fabric={"k": 4, "rate_gbps": 0.0016, "latency_ns": 6e6},
        collective={"message_bytes": packets * 4096},
        controller=controller,
    )


@contextmanager
def running(tmp_path, **controller):
    """Bring a network up; a folder of its own keeps it out of the way of others."""
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))
    pids = []
    try:
        with mininet_fabric(scenario(**controller), Setup(folder=tmp_path / "ofan")) as fabric:
            pids += [*fabric.switches.processes.pids.values(), *fabric.agents.pids]
            yield fabric
            pids += fabric.switches.processes.pids.values()
    finally:
        assert len(pids) >= fabric.tree.switches + 1
        assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "processes are left"
        assert not (tmp_path / "ofan").exists(), "files are left"


def serve(fabric, is_over, seconds=PATIENCE_SECONDS):
    """Serve the network until something is true."""
    limit = time.monotonic() + seconds

    def over():
        assert time.monotonic() < limit, "it never happened"
        fabric.tend()
        return is_over()

    fabric.loop.run(over)


def disturbed(fabric, *events):
    """Run the traffic with things that happen at (milliseconds, action)."""
    run = Run(fabric, fabric.scenario)
    run.start(with_events=False)
    for at_ms, action in events:
        fabric.call_at(at_ms * PS_PER_MS, action)
    fabric.loop.run(lambda: run.is_over)
    return run.outcome()


def change(fabric, down=(), up=()):
    """Return a call that breaks and mends links."""
    return partial(
        fabric.change_links,
        LinkChange(
            *(frozenset(link_named(fabric.tree, name) for name in names) for names in (down, up))
        ),
    )


def holds_its_plan(fabric):
    return all(
        dict(fabric.entries(switch)) == dict(fabric.controller.entries(switch))
        for switch in range(fabric.tree.switches)
    )


@pytest.mark.parametrize(
    "controller",
    [{"detection": "netlink"}, {"detection": "probe", "probe_interval_us": 300_000}],
    ids=["netlink", "probe"],
)
def test_a_failure_that_nobody_announces_is_found_and_routed_around(tmp_path, controller):
    with running(tmp_path, **controller) as fabric:
        first = [dict(fabric.entries(switch)) for switch in range(fabric.tree.switches)]
        outcome = disturbed(fabric, (300, change(fabric, down=[LINK])))
        serve(fabric, lambda: fabric.routed == fabric.failed)
        installation = next(
            installation
            for installation in fabric.installations
            if fabric.failed <= installation.change.down
        )
        assert (
            installation.failed_ps
            < installation.detected_ps
            <= installation.planned_ps
            < installation.installed_ps
        )
        assert outcome.accounts.lost > 0 and outcome.accounts.unaccounted == 0
        assert holds_its_plan(fabric)
        change(fabric, up=[LINK])()
        serve(fabric, lambda: not fabric.routed)
        assert [dict(fabric.entries(switch)) for switch in range(fabric.tree.switches)] == first


def test_a_killed_switch_is_reprovisioned_and_no_other_is_touched(tmp_path):
    with running(tmp_path) as fabric:
        fabric.switches.may_restart, news = True, []
        fabric.on_news = news.append
        victim = switch_named(fabric.tree, "agg1_0")
        sessions, old_pid = dict(fabric.sessions), fabric.switches.processes.pids["agg1_0"]
        entries = dict(fabric.entries(victim))
        healthy_switches = [switch for switch in range(fabric.tree.switches) if switch != victim]
        for switch in healthy_switches:
            fabric.sessions[switch].write = None  # a write to another switch would fail
        outcome = disturbed(fabric, (300, lambda: os.kill(old_pid, signal.SIGKILL)))
        serve(fabric, lambda: not fabric.fleet.lost)
        assert dict(fabric.entries(victim)) == entries
        assert [fabric.sessions[switch] for switch in healthy_switches] == [
            sessions[switch] for switch in healthy_switches
        ]
        assert fabric.switches.processes.pids["agg1_0"] != old_pid
        assert any("agg1_0 was ended by SIGKILL; it is started again" in line for line in news)
        assert any("agg1_0 is back" in line for line in news)
        assert outcome.flows and all(flow.done_ps for flow in outcome.flows)


def test_packets_inside_a_killed_switch_are_lost_there_and_the_accounts_balance(tmp_path):
    with running(tmp_path) as fabric:
        fabric.switches.may_restart = True
        pids = dict(fabric.switches.processes.pids)
        outcome = disturbed(
            fabric,
            (300, lambda: os.kill(pids["agg1_0"], signal.SIGKILL)),
            (500, lambda: os.kill(pids["core0_0"], signal.SIGKILL)),
        )
        assert outcome.accounts.lost > 0
        assert outcome.accounts.unaccounted == 0
        serve(fabric, lambda: not fabric.fleet.lost)
        assert disturbed(fabric).accounts.unaccounted == 0


def test_a_frozen_switch_keeps_neither_the_loop_nor_the_others_waiting(tmp_path):
    with running(tmp_path) as fabric:
        fabric.switches.may_restart = True
        victim = "agg0_0"
        pid = fabric.switches.processes.pids[victim]
        frozen = switch_named(fabric.tree, victim)
        os.kill(pid, signal.SIGSTOP)
        try:
            change(fabric, down=[LINK])()
            serve(fabric, lambda: fabric.installations[-1].installed_ps is not None, seconds=15)
            took_ps = fabric.installations[-1].took_ps
            assert took_ps < 9_000 * PS_PER_MS, "its own deadline is 20 s"
            assert frozen in fabric.fleet.lost
            serve(fabric, lambda: set(fabric.fleet.lost) == {frozen})

            # The requests of `ofan status`.
            begun = time.monotonic()
            counters = fabric.switches.counters()
            assert len(fabric.held_entries()) == fabric.tree.switches - 1
            assert time.monotonic() - begun < 5
            assert [switch_counters.is_silent for switch_counters in counters].count(True) == 1
        finally:
            os.kill(pid, signal.SIGCONT)
        serve(fabric, lambda: not fabric.fleet.lost)
        assert holds_its_plan(fabric)


def test_what_a_frozen_switch_has_inside_is_counted_in_its_own_run_alone(tmp_path):
    with running(tmp_path) as fabric:
        fabric.switches.may_restart = True
        pid = fabric.switches.processes.pids["core0_0"]
        run = Run(fabric, fabric.scenario)
        run.start(with_events=False)
        fabric.call_at(300 * PS_PER_MS, lambda: os.kill(pid, signal.SIGSTOP))
        fabric.call_at(900 * PS_PER_MS, fabric.agents.stop)
        try:
            fabric.loop.run(lambda: run.is_over)
            with pytest.raises(EmulationError, match="still under way, 0 unaccounted for"):
                run.outcome()
        finally:
            os.kill(pid, signal.SIGCONT)
        again = disturbed(fabric)
        assert again.accounts.unaccounted == 0
        assert again.accounts.sent == again.accounts.received


def test_a_run_that_is_stopped_leaves_nothing_to_the_next(tmp_path):
    with running(tmp_path) as fabric:
        run = Run(fabric, fabric.scenario)
        run.start(with_events=False)
        fabric.call_at(500 * PS_PER_MS, fabric.agents.stop)
        fabric.loop.run(lambda: run.is_over)
        with pytest.raises(EmulationError, match=r"0 lost .* 0 unaccounted for"):
            run.outcome()
        accounts = disturbed(fabric).accounts
        assert accounts.sent == accounts.received


def test_probes_route_around_a_dead_switch_and_use_it_again(tmp_path):
    # The switch is up again after some 0.5 s: three probes must have missed it before.
    with running(tmp_path, packets=60, detection="probe", probe_interval_us=80_000) as fabric:
        fabric.switches.may_restart = True
        disturbed(
            fabric,
            (300, lambda: os.kill(fabric.switches.processes.pids["core0_0"], signal.SIGKILL)),
        )
        serve(
            fabric,
            lambda: len(fabric.installations) > 1 and not fabric.routed and not fabric.fleet.lost,
        )
        assert len(fabric.installations[0].change.down) >= 1
        assert holds_its_plan(fabric)


@pytest.mark.parametrize("detection", ["announced", "netlink", "probe"])
def test_a_new_controller_reads_back_and_sends_only_the_difference(tmp_path, detection):
    with running(tmp_path, detection=detection) as fabric:
        disturbed(fabric, (200, fabric.restart_controller))
        serve(fabric, lambda: not fabric.routed)
        assert holds_its_plan(fabric)
        change(fabric, down=[LINK])()
        serve(fabric, lambda: fabric.routed == fabric.failed)
        assert holds_its_plan(fabric)


def test_the_controller_that_another_one_replaces_stands_back_and_comes_back(tmp_path):
    with running(tmp_path) as fabric:
        rival_access = type(fabric.access)(
            fabric.access.device_config,
            fabric.access.pipeline,
            fabric.access.connect,
            election_id=5_000,
        )
        brain = type(fabric.controller)(fabric.scenario, fabric.access.pipeline, fabric.failed)
        rival = Fleet(brain, rival_access)
        rival.open()
        serve(fabric, lambda: len(fabric.fleet.lost) == fabric.tree.switches)
        change(fabric, down=[LINK])()
        serve(fabric, lambda: fabric.installations[-1].installed_ps)
        rival.write(brain.start())
        rival.close()
        serve(fabric, lambda: not fabric.fleet.lost)
        assert holds_its_plan(fabric)
        assert link_named(fabric.tree, LINK) in fabric.routed


def test_a_link_that_flaps_at_10_hz_is_damped(tmp_path):
    flaps = [(100 * n + (0 if down else 50), down) for n in range(3, 13) for down in (True, False)]
    with running(tmp_path, detection="netlink", damping_half_life_us=500_000) as fabric:
        events = [
            (at_ms, change(fabric, **{"down" if down else "up": [LINK]})) for at_ms, down in flaps
        ]
        outcome = disturbed(fabric, *events)
        serve(fabric, lambda: not fabric.routed and fabric.controller.next_release_ps is None)
        assert outcome.accounts.unaccounted == 0
        planned = [installation for installation in fabric.installations if installation.updates]
        assert len(planned) < 2 * 10, "not every flap is worth a plan"
        assert holds_its_plan(fabric)


def test_the_agent_that_dies_is_named_with_its_hosts(tmp_path):
    with running(tmp_path) as fabric:
        (pid,) = fabric.agents.pids
        hosts = "h0_0_0, h0_0_1, h0_1_0 and 13 more hosts"
        said = rf"^the agent of {hosts} \(process {pid}\) was ended by SIGKILL$"
        with pytest.raises(EmulationError, match=said):
            disturbed(fabric, (300, lambda: os.kill(pid, signal.SIGKILL)))


def test_ten_links_that_fail_within_a_second_are_all_routed_around(tmp_path):
    """Of the 32 links of k = 4, ten that leave every host a path.

    30 of more are in tests/emulation/virtual/test_faults.py.
    """
    names = [f"edge{pod}_{edge}-agg{pod}_0" for pod in range(4) for edge in range(2)]
    names += ["agg0_1-core1_0", "agg3_1-core1_0"]
    with running(tmp_path, detection="netlink") as fabric:
        events = [(300 + 100 * n, change(fabric, down=[name])) for n, name in enumerate(names)]
        outcome = disturbed(fabric, *events)
        assert outcome.accounts.unaccounted == 0
        assert fabric.routed == {link_named(fabric.tree, name) for name in names}
        assert holds_its_plan(fabric)
