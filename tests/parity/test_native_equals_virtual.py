"""The simulator's windows around P4 programs against the virtual network: every field, every event.

Programs are machine code; a few runs have the switches' Python pipelines behind the same functions.
"""

from collections.abc import Callable
from typing import Any

import pytest

from emulation.errors import EmulationError
from emulation.outcomes.outcome import Outcome
from emulation.virtual.fabric import VirtualFabric
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
from tests.parity.drawing import pairs
from tests.parity.engines import assert_same, native, outcome_of
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
ALL_TO_ALL = Collective(matrix="all_to_all", message_bytes=5 * 4096 + 300)
BREAKS = (
    FailureEvent(link="agg0_0-core0_0", down_ns=1500),
    FailureEvent(link="edge1_0-agg1_1", down_ns=2500, up_ns=9000),
)
FAILING = {
    f"G = {rtts:g} RTT": Failures(events=BREAKS, convergence_rtt=rtts)
    for rtts in (0, 2, float("inf"))
}
FAILURES = {"no failure": Failures(), **FAILING}
TRIMMED_SACK = Transport(recovery="sack", trimming=True)
TIGHT = Fabric(k=4, queue_bytes=10_000)


def scenario(policy: str = "ofan", **settings: Any) -> Scenario:
    return Scenario(
        policy=policy, **{"fabric": Fabric(k=4), "collective": SMALL, "seed": 5, **settings}
    )


def ended(run: Callable[[], Outcome]) -> Outcome | str:
    """Return an outcome, or the incomplete flows by the error of a run that cannot end."""
    try:
        return run()
    except EmulationError as error:
        return str(error).partition(" µs, ")[2]


@pytest.mark.parametrize(("policy", "failing"), pairs([*POLICIES], [*FAILURES]))
def test_every_load_balancer_has_the_same_events(policy: str, failing: str) -> None:
    experiment = scenario(policy, failures=FAILURES[failing])
    theirs = ended(PythonFabric(experiment).run)
    ours = ended(native(experiment).run)
    if isinstance(theirs, str) or isinstance(ours, str):
        assert ours == theirs
    else:
        assert_same(ours, theirs)


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "jsq", "fabric": TIGHT, "transport": Transport(recovery="sack")},
        {
            "policy": "rsq",
            "fabric": TIGHT,
            "transport": Transport(recovery="sack", congestion="mswift"),
        },
        {"policy": "host_pkt_ar", **NSCC_INCAST},
        {**TRIMMING, "transport": Transport(trimming=True)},
        {"policy": "jsq", **TRIMMING, "transport": TRIMMED_SACK},
        {"policy": "host_dr", **TRIMMING, "transport": TRIMMED_SACK, "failures": HOSTS_TOO},
        {
            "policy": "uet_bitmap",
            **TRIMMING,
            "transport": TRIMMED_SACK.model_copy(update={"congestion": "nscc"}),
        },
        {
            "policy": "mrc",
            **TRIMMING,
            "transport": TRIMMED_SACK.model_copy(update={"congestion": "nscc"}),
        },
        {"policy": "mrc", "transport": Transport(recovery="sack"), "failures": HOSTS_TOO},
        {
            "policy": "mrc_srv6",
            **TRIMMING,
            "transport": TRIMMED_SACK.model_copy(update={"congestion": "nscc"}),
            "packets": Packets(tunnel_bytes=40),
        },
        {"policy": "mrc_srv6", "failures": HOSTS_TOO, "transport": Transport(recovery="sack")},
        {**TRIMMING_SLOW, "transport": TRIMMED_SACK},
        {"policy": "host_dr", **TRIMMING_SLOW, "transport": Transport(trimming=True)},
        # NACKs wait in lanes of ports with empty queues until data come.
        {"fabric": TIGHT, "collective": ALL_TO_ALL, "transport": TRIMMED_SACK},
        {
            "policy": "host_flowlet_ar",
            "fabric": TIGHT,
            "collective": ALL_TO_ALL,
            "transport": TRIMMED_SACK.model_copy(update={"congestion": "swift"}),
        },
        {"transport": TRIMMED_SACK.model_copy(update={"packets_per_ack": 4})},
        {
            "policy": "host_dr",
            **TRIMMING,
            "transport": TRIMMED_SACK.model_copy(update={"packets_per_ack": 3}),
        },
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
        {"policy": "rsq", "fabric": TIGHT},
        {
            "policy": "host_dr",
            "fabric": TIGHT,
            "transport": Transport(recovery="sack"),
            "failures": FAILING["G = 2 RTT"],
        },
        {"collective": Collective(matrix="ring", message_bytes=16 * 4096, steps=3)},
        {"failures": FAILING["G = 2 RTT"].model_copy(update={"local_repair": True})},
        {
            "policy": "host_pkt_ar",
            "load_balancer": LoadBalancer(ecn_percent=2),
            "collective": Collective(message_bytes=64 * 4096),
        },
        {"failures": HOSTS_TOO, "transport": Transport(recovery="sack")},
        {"failures": SLOW},
        {"failures": SLOW, "policy": "host_dr"},
        {"packets": Packets(payload_bytes=256)},
        {"fabric": Fabric(k=2)},
        {"fabric": Fabric(k=4, latency_ns=10_000)},
        {"fabric": Fabric(k=4, latency_ns=0.1)},
    ],
    ids=[
        "drops and SACK",
        "drops and MSwift",
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
        "trimming, slow links, waypoints",
        "trimming all to all",
        "trimming all to all, flowlets",
        "few ACKs",
        "few ACKs, trimming and waypoints",
        "few ACKs and erasure",
        "go-back-N",
        "go-back-N, DCQCN and few ACKs",
        "go-back-N, NICs that put in order",
        "trimming and DCQCN",
        "drops",
        "waypoints and SACK",
        "ring",
        "local repair",
        "REPS and marks",
        "switches, hosts, losses and SACK",
        "links at a fraction of their rate",
        "links at a fraction of their rate, Host DR",
        "tiny packets",
        "k = 2",
        "slow links",
        "fast links",
    ],
)
def test_other_settings_have_the_same_events(settings: dict[str, Any]) -> None:
    experiment = scenario(**settings)
    outcome_of(experiment)


@pytest.mark.parametrize("policy", ["ofan", "host_dr", "jsq"])
def test_threads_change_nothing(policy: str) -> None:
    experiment = scenario(policy, failures=FAILING["G = 2 RTT"])
    theirs = PythonFabric(experiment).run()
    fabric = VirtualFabric(
        experiment,
        has_digest=False,
        threads=3,
    )
    ours = fabric.run()
    assert ours.digest == ""
    for name in ("flows", "ports", "samples", "accounts", "end_ps", "hops"):
        assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize("policy", ["host_dr", "jsq"])
def test_the_windows_do_not_care_what_is_behind_the_functions(policy: str) -> None:
    experiment = scenario(policy, failures=FAILING["G = 2 RTT"])
    assert_same(
        VirtualFabric(experiment, is_interpreted=True).run(), PythonFabric(experiment).run()
    )
