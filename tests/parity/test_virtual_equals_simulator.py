"""P4 programs, controller and real bytes against the simulator's kernels, to the picosecond."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import sim
from emulation.errors import EmulationError
from emulation.outcomes.folder import flows_of, ports_of, record
from emulation.outcomes.outcome import Outcome
from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Packets,
    Scenario,
    Transport,
)
from fattree.policies import POLICIES
from sim.sweeps.run_frames import flow_frame, port_frame
from tests.parity.scenarios import (
    HOSTS_TOO,
    IN_ORDER,
    NSCC_INCAST,
    SLOW,
    TRIMMING,
    TRIMMING_SLOW,
)
from tests.python_network.fabric import PythonFabric

# The last packet has 100 bytes: to switches it is of the ACKs' class.
SMALL = Collective(message_bytes=23 * 4096 + 100)
TRIMMED_SACK = Transport(recovery="sack", trimming=True)
TRIMMED_NSCC = Transport(recovery="sack", congestion="nscc", trimming=True)
FEW = {"packets_per_ack": 4}
EXACT = (
    "cct_ps",
    "sending_cct_ps",
    "bound_ps",
    "max_queue_bytes",
    "dropped",
    "trimmed",
    "marked",
    "lost_to_failure",
    "transmissions",
    "packet_hops",
    "freezes",
    "returns",
)
COUNTS = ("packets", "bytes", "dropped", "trimmed", "marked", "lost_to_failure", "max_queue_bytes")


def scenario(policy: str, **settings: Any) -> Scenario:
    return Scenario(
        policy=policy, **{"fabric": Fabric(k=4), "collective": SMALL, "seed": 5, **settings}
    )


def assert_same(outcome: Outcome, result: sim.Result) -> None:
    assert [flow.done_ps for flow in outcome.flows] == result.done_ps.tolist()
    theirs = {name: getattr(result.ports, name).tolist() for name in COUNTS}
    assert {name: [getattr(port, name) for port in outcome.ports] for name in COUNTS} == theirs
    # The files of results folders and the frames of Python: columns, names and values.
    assert_frame_equal(flows_of(outcome), flow_frame(result))
    assert_frame_equal(ports_of(outcome), port_frame(result))
    ours, twin = record(outcome, "virtual"), result.record
    assert {name: getattr(ours, name) for name in EXACT} == {
        name: getattr(twin, name) for name in EXACT
    }
    assert ours.mean_queue_layers == pytest.approx(twin.mean_queue_layers)
    assert ours.utilisation_layers == pytest.approx(twin.utilisation_layers)


@pytest.mark.parametrize(("size", "marks"), [(211, False), (212, True)])
def test_switches_take_the_shortest_packets_for_acks(size: int, marks: bool) -> None:
    # ACKs are never marked. An IPv4 packet of 256 bytes is none, whatever it is wrapped in.
    pairs = tuple((host, to) for host in range(4) for to in (12, 13) for _ in range(30))
    experiment = scenario(
        "host_dr",
        fabric=Fabric(k=4, edge_agg_gbps=100, agg_core_gbps=100),
        collective=Collective(matrix="pairs", message_bytes=size, pairs=pairs),
        transport=Transport(recovery="sack", congestion="nscc"),
        load_balancer=LoadBalancer(ecn_percent=0.05),
    )
    result = sim.run(experiment)
    assert_same(PythonFabric(experiment).run(), result)
    assert (result.record.marked > 0) == marks


@pytest.mark.parametrize("policy", POLICIES)
def test_every_load_balancer_is_the_same_on_both_networks(policy: str) -> None:
    experiment = scenario(policy)
    assert_same(PythonFabric(experiment).run(), sim.run(experiment))


@pytest.mark.parametrize(
    "settings",
    [
        {
            "failures": Failures(
                events=(FailureEvent(link="agg0_0-core0_0", down_ns=1500, up_ns=9000),),
                convergence_rtt=0.5,
            )
        },
        {"failures": Failures(rate=0.05)},
        {
            "fabric": Fabric(k=4, queue_bytes=20_000),
            "transport": Transport(recovery="sack"),
            "policy": "jsq",
        },
        {"collective": Collective(matrix="ring", message_bytes=16 * 4096, steps=3)},
        {"failures": HOSTS_TOO},
        {"failures": HOSTS_TOO, "transport": Transport(recovery="sack")},
        {"failures": SLOW},
        {"failures": SLOW, "policy": "host_dr"},
        NSCC_INCAST,
        {**TRIMMING, "transport": Transport(trimming=True)},
        {"policy": "switch_pkt_ar", **TRIMMING, "transport": TRIMMED_SACK},
        {"policy": "host_dr", **TRIMMING, "transport": TRIMMED_SACK, "failures": HOSTS_TOO},
        {"policy": "uet_bitmap", **TRIMMING, "transport": TRIMMED_NSCC},
        {"policy": "mrc", **TRIMMING, "transport": TRIMMED_NSCC},
        {"policy": "mrc", "failures": HOSTS_TOO, "transport": Transport(recovery="sack")},
        {
            "policy": "mrc_srv6",
            **TRIMMING,
            "transport": TRIMMED_NSCC,
            "packets": Packets(tunnel_bytes=40),
        },
        {"policy": "mrc_srv6", "failures": HOSTS_TOO, "transport": Transport(recovery="sack")},
        {**TRIMMING_SLOW, "transport": TRIMMED_SACK},
        {"policy": "host_dr", **TRIMMING_SLOW, "transport": TRIMMED_NSCC},
        {"policy": "host_pkt_ar", "transport": TRIMMED_SACK.model_copy(update=FEW)},
        {"policy": "host_dr", **TRIMMING, "transport": TRIMMED_NSCC.model_copy(update=FEW)},
        {"transport": Transport(packets_per_ack=5)},
        {"policy": "flow", **TRIMMING, "transport": Transport(recovery="go_back_n")},
        {
            **TRIMMING,
            "transport": Transport(recovery="go_back_n", congestion="dcqcn", packets_per_ack=3),
            "load_balancer": LoadBalancer(ecn_percent=10),
        },
        {"policy": "switch_pkt_ar", **TRIMMING, "transport": IN_ORDER},
        {
            "policy": "rsq",
            **TRIMMING,
            "transport": TRIMMED_SACK.model_copy(update={"congestion": "dcqcn"}),
        },
        {"load_balancer": LoadBalancer(edge_pointers="pod")},
        {"load_balancer": LoadBalancer(agg_pointers="edge"), "failures": Failures(rate=0.05)},
    ],
    ids=[
        "a link fails and comes back",
        "random failures",
        "drops and SACK",
        "ring",
        "switches, hosts, losses",
        "switches, hosts, losses and SACK",
        "links at a fraction of their rate",
        "links at a fraction of their rate, Host DR",
        "NSCC's incast",
        "trimming",
        "trimming and SACK",
        "trimming, waypoints and failures",
        "trimming and NSCC",
        "MRC, trimming and NSCC",
        "MRC, switches, hosts, losses and SACK",
        "MRC over SRv6, trimming and NSCC",
        "MRC over SRv6, switches, hosts, losses and SACK",
        "trimming, slow links",
        "trimming, slow links, waypoints and NSCC",
        "few ACKs",
        "few ACKs, trimming, waypoints and NSCC",
        "few ACKs and erasure",
        "go-back-N",
        "go-back-N, DCQCN and few ACKs",
        "go-back-N, NICs that put in order",
        "trimming and DCQCN",
        "coarser pointers",
        "finer pointers",
    ],
)
def test_other_settings_are_the_same_on_both_networks(settings: dict[str, Any]) -> None:
    experiment = scenario(**{"policy": "ofan", **settings})
    assert_same(PythonFabric(experiment).run(), sim.run(experiment))


FIXED_PATHS = ("flow", "subflow")
FAILING = {
    f"G = {rtts:g} RTT": Failures(
        events=(FailureEvent(link="agg0_0-core0_0", down_ns=1500),), convergence_rtt=rtts
    )
    for rtts in (0, 2, float("inf"))
}


def unfinished(run: Callable[[], object], refusal: type[Exception]) -> str:
    """Return how many flows are not complete by the error of a run that cannot end."""
    with pytest.raises(refusal, match=r"\d+ flow") as stopped:
        run()
    matched = re.search(r"(\d+) flow", str(stopped.value))
    assert matched
    return matched[1]


@pytest.mark.slow
@pytest.mark.parametrize("failures", [Failures(), *FAILING.values()], ids=["no failure", *FAILING])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_load_balancer_completes_64_packets_the_same_whatever_g_is(
    policy: str, failures: Failures
) -> None:
    never = policy in FIXED_PATHS and failures.convergence_rtt == float("inf")
    # A run that cannot end sends until the horizon, which grows with the message.
    packets = 8 if never else 64
    collective = Collective(message_bytes=packets * 4096)
    experiment = scenario(policy, collective=collective, failures=failures)
    if never:
        virtual = unfinished(PythonFabric(experiment).run, EmulationError)
        assert virtual == unfinished(lambda: sim.run(experiment), sim.UnfinishedError)
        return
    assert_same(PythonFabric(experiment).run(), sim.run(experiment))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["simple_rr", "host_pkt_ar", "switch_pkt_ar", "ofan"])
def test_256_packets_at_k_6_are_the_same_on_both_networks(policy: str) -> None:
    experiment = scenario(policy, fabric=Fabric(k=6), collective=Collective())
    assert_same(PythonFabric(experiment).run(), sim.run(experiment))
