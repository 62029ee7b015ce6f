"""P4 switches with schedules from their own BGP routes (FRR), and real packets."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pydantic import ValidationError

from controller.fabric_controller import LinkChange
from controller.routed import ReportedController
from emulation.errors import FailedRunError, NetworkError, UnsupportedError
from emulation.mininet.bgp.routers import refuse_without_frr
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.limits import refuse_unsupported
from emulation.mininet.run import run_on
from emulation.virtual import fabric as virtual
from fattree.experiment.model import Scenario
from fattree.policies import PAPER_POLICIES
from fattree.routes.bgp import uplink_ratios
from fattree.shape.topology import FatTree

CORE_LINK = FatTree(4).edge_links


@pytest.fixture
def able():
    """Skip a test on a machine without root, namespaces or FRR."""
    try:
        refuse_if_unable()
        refuse_without_frr(FatTree(4))
    except NetworkError as error:
        pytest.skip(str(error))


def under_bgp(policy: str = "ofan", packets: int = 16, **tables: object) -> Scenario:
    return Scenario.model_validate(
        {
            "policy": policy,
            "fabric": {"k": 4, "rate_gbps": 0.002, "latency_ns": 100},
            "collective": {"message_bytes": packets * 4096},
            "controller": {"kind": "bgp"},
            **tables,
        }
    )


def setup() -> Setup:
    # FRR is a user of its own, who cannot pass through the folder of a test.
    return Setup(folder=Path(f"/run/ofan-test-{os.getpid()}"))


def await_routes_of(fabric: MininetFabric, failed: frozenset[int]) -> None:
    controller = fabric.controller
    assert isinstance(controller, ReportedController)
    routes = uplink_ratios(fabric.tree, failed, "bgp")
    fabric.loop.run(lambda: controller.has_routes(routes))


@pytest.mark.root
@pytest.mark.slow
def test_schedules_follow_the_routes_of_each_switch_under_traffic(able):
    down = {"link": "agg0_0-core0_0", "down_ns": 3e8}
    scenario = under_bgp(packets=96, failures={"events": [down]})
    with mininet_fabric(scenario, setup()) as fabric:
        before = fabric.all_entries(range(fabric.tree.switches))
        outcome = run_on(fabric)
        (change,) = fabric.installations
        # The switches have the entries of their own plans, and some have others than before.
        after = fabric.all_entries(range(fabric.tree.switches))
        assert after == {switch: fabric.controller.entries(switch) for switch in after}
        assert after != before

        # Mended, each switch is back at its first entries.
        fabric.change_links(LinkChange(up=frozenset({CORE_LINK})))
        await_routes_of(fabric, frozenset())
        assert fabric.all_entries(range(fabric.tree.switches)) == before

    assert outcome.accounts.unaccounted == 0 and len(outcome.flows) == 16
    assert change.detection == "bgp" and change.installed_ps is not None
    assert change.failed_ps < change.detected_ps <= change.installed_ps


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("policy", PAPER_POLICIES)
def test_each_load_balancer_of_the_paper_runs_under_bgp(policy, able):
    with mininet_fabric(under_bgp(policy), setup()) as fabric:
        outcome = run_on(fabric)

    # Subflows are flows of their own.
    assert len(outcome.flows) in (16, 64)
    assert outcome.accounts.unaccounted == outcome.accounts.lost == 0


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("process", ["agg0_0 bgpd", "core1_0 zebra", "edge0_0 planner"])
@pytest.mark.parametrize(
    ("number", "ending"), [(signal.SIGKILL, "was ended by SIGKILL"), (signal.SIGSTOP, "is frozen")]
)
def test_a_process_that_ends_or_is_frozen_ends_a_run(process, number, ending, able):
    with mininet_fabric(under_bgp(packets=256), setup()) as fabric:
        os.kill(fabric.routers.processes.pids[process], number)
        with pytest.raises(FailedRunError, match=f"^{process} {ending}"):
            run_on(fabric)


@contextmanager
def held() -> Iterator[tuple[MininetFabric, list[str]]]:
    """Bring up a network that goes on without a process; yield it and its news."""
    news: list[str] = []
    with mininet_fabric(under_bgp(packets=96), setup()) as fabric:
        fabric.switches.may_restart = True
        fabric.on_news = news.append
        yield fabric, news


def until(fabric: MininetFabric, is_true: Callable[[], bool], seconds: float = 30) -> None:
    """Tend a held network until something is true."""
    limit = time.monotonic() + seconds

    def is_over() -> bool:
        assert time.monotonic() < limit, "it never happened"
        fabric.tend()
        return is_true()

    fabric.loop.run(is_over)


def has_plan(fabric: MininetFabric) -> bool:
    """Return whether all switches have the entries of BGP's routes for the present links."""
    controller = fabric.controller
    assert isinstance(controller, ReportedController)
    if not controller.has_routes(uplink_ratios(fabric.tree, fabric.failed, "bgp")):
        return False

    entries = fabric.all_entries(range(fabric.tree.switches))
    return entries == {switch: controller.entries(switch) for switch in entries}


@pytest.mark.root
@pytest.mark.slow
def test_a_planner_that_is_killed_comes_back_to_the_plan_of_the_routes_meanwhile(able):
    with held() as (fabric, news):
        pids = fabric.routers.processes.pids
        # Three at once: an edge's, an agg's and a core's; a link fails before they are back.
        names = ("edge0_0 planner", "agg0_1 planner", "core1_1 planner")
        killed = [pids[name] for name in names]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

        fabric.change_links(LinkChange(down=frozenset({CORE_LINK})))
        until(fabric, lambda: sum(" planner is back: " in line for line in news) == 3)
        until(fabric, lambda: has_plan(fabric))
        outcome = run_on(fabric)
        assert not set(killed) & set(pids.values())

    assert outcome.accounts.unaccounted == outcome.accounts.lost == 0
    for name in names:
        assert f"{name} was ended by SIGKILL; it is started again" in news

    # A core's entries are all there: its new planner writes none.
    assert "core1_1 planner is back: 0 updates have brought core1_1 to the plan" in news
    assert len(news) == 6


@pytest.mark.root
@pytest.mark.slow
def test_a_planner_that_was_frozen_catches_up(able):
    with held() as (fabric, news):
        before = fabric.entries(0)
        pid = fabric.routers.processes.pids["edge0_0 planner"]
        os.kill(pid, signal.SIGSTOP)
        until(fabric, lambda: bool(news), seconds=4)
        assert news == ["edge0_0 planner is frozen; the others go on"]

        # Its switch forwards by its old entries, over a link that has failed: packets are sent
        # again, and each of them is accounted for.
        fabric.change_links(LinkChange(down=frozenset({0})))
        outcome = run_on(fabric)
        assert fabric.entries(0) == before

        os.kill(pid, signal.SIGCONT)
        until(fabric, lambda: has_plan(fabric))
        until(fabric, lambda: news[1:] == ["edge0_0 planner is awake again"], seconds=4)
        assert fabric.entries(0) != before

    assert len(outcome.flows) == 16 and outcome.accounts.unaccounted == 0 < outcome.accounts.lost


def lacks(fabric: MininetFabric, switch: int, uplink: int) -> bool:
    """Return whether a switch has no entry that uses an uplink."""
    port = fabric.tree.uplink_port(switch, uplink)
    used = [call for (table, _), call in fabric.entries(switch).items() if table == "schedule"]
    return bool(used) and ("take_port", (port,)) not in used


@pytest.mark.root
@pytest.mark.slow
def test_neighbors_leave_a_router_whose_bgpd_ends(able):
    with held() as (fabric, news):
        os.kill(fabric.routers.processes.pids["agg0_0 bgpd"], signal.SIGKILL)
        until(fabric, lambda: lacks(fabric, 0, 0) and lacks(fabric, 1, 0))
        outcome = run_on(fabric)

    assert len(outcome.flows) == 16 and outcome.accounts.unaccounted == 0
    assert news == ["agg0_0 bgpd was ended by SIGKILL; the other routers go on"]


@pytest.mark.root
@pytest.mark.slow
def test_neighbors_leave_a_router_whose_bgpd_is_frozen_until_it_is_awake(able):
    with held() as (fabric, news):
        pid = fabric.routers.processes.pids["agg0_0 bgpd"]
        began = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        until(fabric, lambda: bool(news), seconds=4)
        # Nine seconds without a word of it end its sessions; BFD's daemon goes on.
        until(fabric, lambda: lacks(fabric, 0, 0))
        assert 5 < time.monotonic() - began < 15
        outcome = run_on(fabric)

        os.kill(pid, signal.SIGCONT)
        until(fabric, lambda: has_plan(fabric))
        until(fabric, lambda: len(news) == 2, seconds=4)

    assert outcome.accounts.unaccounted == outcome.accounts.lost == 0
    assert news == ["agg0_0 bgpd is frozen; the others go on", "agg0_0 bgpd is awake again"]


@pytest.mark.root
@pytest.mark.slow
def test_a_switch_that_is_started_again_gets_its_plan_from_its_planner(able):
    with held() as (fabric, news):
        before = fabric.entries(0)
        os.kill(fabric.switches.processes.pids["edge0_0"], signal.SIGKILL)
        until(fabric, lambda: any("edge0_0 is back: " in line for line in news))
        assert fabric.entries(0) == before and has_plan(fabric)

    # The end of its connection may be news before that.
    assert "edge0_0 was ended by SIGKILL; it is started again" in news[:2]


@pytest.mark.root
@pytest.mark.slow
def test_all_planners_can_be_replaced_at_once(able):
    with held() as (fabric, news):
        before = fabric.all_entries(range(fabric.tree.switches))
        fabric.restart_controller()
        assert fabric.all_entries(range(fabric.tree.switches)) == before and has_plan(fabric)
        fabric.change_links(LinkChange(down=frozenset({CORE_LINK})))
        until(fabric, lambda: has_plan(fabric))

    assert news == []


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1, 4, 7, 9, 11, 13, 15, 18])
def test_nothing_is_left_when_a_network_is_killed_at_any_moment(seconds, able):
    # All that it starts inherit this variable, which other networks on this machine do not have.
    mark = f"OFAN_KILLED={os.getpid()}-{seconds}"
    options = ["--network", "mininet", "--set", "controller.kind=bgp", "--policies", "ofan"]
    # A held network does not end before it is killed.
    command = [sys.executable, "-I", "-m", "ofan", "emulate", "mininet_k4", "--hold", *options]
    environment = {**os.environ, **dict([mark.split("=")])}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, start_new_session=True, env=environment
    ) as process:
        time.sleep(seconds)
        running = marked(mark)
        process.kill()

    limit = time.monotonic() + 20
    while marked(mark) and time.monotonic() < limit:
        time.sleep(0.1)

    # A namespace without a process would need a mount.
    assert process.pid in running and not marked(mark)
    assert "nsfs" not in Path("/proc/self/mounts").read_text()
    assert not Path("/run/ofan").exists()


def marked(variable: str) -> set[int]:
    """Return the processes with a variable in their environment."""
    pids = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if variable.encode() in path.read_bytes().split(b"\0"):
                pids.add(int(path.parent.name))

    return pids


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"failures": {"convergence_rtt": 2}}, r"failures\.convergence_rtt"),
        (
            {
                "fabric": {
                    "pods": 1, "edges_per_pod": 2, "hosts_per_edge": 2, "aggs_per_pod": 2,
                    "cores_per_agg": 0, "edge_agg_links": 2, "rate_gbps": 0.002,
                }
            },
            "over parallel links",
        ),
    ],
)  # fmt: skip
def test_a_setting_that_routes_cannot_serve_is_refused(tables, reason):
    with pytest.raises(UnsupportedError, match=reason):
        refuse_unsupported(under_bgp(**tables))


@pytest.mark.parametrize(
    ("controller", "reason"),
    [
        ({"detection": "probe"}, "BGP detects failures itself"),
        ({"damping_half_life_us": 5}, 'needs kind = "central"'),
        ({"weights": "bgp"}, "leave weights out"),
    ],
)
def test_a_setting_of_the_central_controller_is_refused(controller, reason):
    with pytest.raises(ValidationError, match=reason):
        under_bgp(controller={"kind": "bgp", **controller})


def test_virtual_time_has_no_bgp():
    with pytest.raises(UnsupportedError, match=r"controller\.kind"):
        virtual.refuse_unsupported(under_bgp())
