"""Real packets on other fabrics than fat-trees: accounts balance, and times are virtual time's."""

from typing import Any

import pytest

from emulation.errors import NetworkError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.run import run_on
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Scenario

pytestmark = [pytest.mark.root, pytest.mark.slow]
SLOW = {"rate_gbps": 0.001, "latency_ns": 10e6}
FABRICS: dict[str, dict[str, Any]] = {
    "leaf-spine": {
        "edges_per_pod": 3,
        "hosts_per_edge": 3,
        "aggs_per_pod": 2,
        "edge_agg_gbps": 0.002,
        "edge_agg_latency_ns": 5e6,
    },
    "oversubscribed, parallel links": {
        "pods": 2,
        "edges_per_pod": 2,
        "hosts_per_edge": 3,
        "aggs_per_pod": 1,
        "edge_agg_links": 2,
        "cores_per_agg": 1,
        "agg_core_links": 2,
    },
    "rails": {"planes": 2, "edges_per_pod": 2, "hosts_per_edge": 2, "aggs_per_pod": 2},
    "planes of three levels": {
        "planes": 2,
        "pods": 2,
        "edges_per_pod": 1,
        "hosts_per_edge": 2,
        "aggs_per_pod": 1,
        "cores_per_agg": 2,
    },
}


@pytest.fixture(autouse=True)
def able():
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", FABRICS)
def test_a_fabric_carries_a_permutation_as_in_virtual_time(name, tmp_path, record_property):
    scenario = Scenario(
        fabric={**SLOW, **FABRICS[name]}, collective={"message_bytes": 24 * 4096}, seed=3
    )
    virtual = VirtualFabric(scenario).run()
    with mininet_fabric(scenario, Setup(folder=tmp_path / "ofan")) as fabric:
        outcome = run_on(fabric)
    record_property(
        "cct_ms", [round(cct_ps / 1e9, 1) for cct_ps in (virtual.cct_ps, outcome.cct_ps)]
    )
    assert outcome.accounts.unaccounted == outcome.accounts.dropped == 0
    assert outcome.cct_ps == pytest.approx(virtual.cct_ps, rel=0.25)


@pytest.mark.parametrize(
    ("name", "use"), [("rails", "spray"), ("rails", "keep"), ("planes of three levels", "keep")]
)
def test_an_all_reduce_goes_over_planes_as_in_virtual_time(name, use, tmp_path, record_property):
    # Kept to a plane in turn, each message waits for a message of another NIC.
    scenario = Scenario(
        fabric={**SLOW, **FABRICS[name], "plane_use": use},
        collective={"matrix": "all_reduce", "message_bytes": 16 * 4096, "chunks": 2},
        seed=3,
    )
    virtual = VirtualFabric(scenario).run()
    with mininet_fabric(scenario, Setup(folder=tmp_path / "ofan")) as fabric:
        outcome = run_on(fabric)
    record_property(
        "cct_ms", [round(cct_ps / 1e9, 1) for cct_ps in (virtual.cct_ps, outcome.cct_ps)]
    )
    assert outcome.accounts.unaccounted == outcome.accounts.dropped == 0
    assert outcome.cct_ps == pytest.approx(virtual.cct_ps, rel=0.25)
