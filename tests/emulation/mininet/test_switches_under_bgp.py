"""P4 switches with schedules from their own BGP routes (FRR), and real packets."""

import os
import signal
from pathlib import Path

import pytest
from pydantic import ValidationError

from controller.fabric_controller import LinkChange
from controller.routed import RoutedController
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
    assert isinstance(controller, RoutedController)
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
@pytest.mark.parametrize("daemon", ["bgpd", "zebra"])
def test_a_daemon_that_ends_is_named(daemon, able):
    with mininet_fabric(under_bgp(packets=256), setup()) as fabric:
        os.kill(fabric.routers.processes.pids[f"agg0_0 {daemon}"], signal.SIGKILL)
        with pytest.raises(FailedRunError, match=f"agg0_0 {daemon} was ended by SIGKILL"):
            run_on(fabric)


@pytest.mark.root
@pytest.mark.slow
def test_a_held_network_goes_on_without_a_daemon(able):
    news: list[str] = []
    with mininet_fabric(under_bgp(), setup()) as fabric:
        fabric.switches.may_restart = True
        fabric.on_news = news.append
        os.kill(fabric.routers.processes.pids["core1_1 bgpd"], signal.SIGKILL)
        outcome = run_on(fabric)

    assert len(outcome.flows) == 16
    assert news == ["core1_1 bgpd was ended by SIGKILL; the other routers go on"]


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
