"""The Mininet network on BMv2's simple_switch_grpc, where it is installed (`make test-bmv2`)."""

import os
import shutil
import socket
from pathlib import Path

import pytest

import p4src
from controller.errors import ControllerError
from controller.fabric_controller import LinkChange
from emulation.errors import EmulationError, NetworkError, StartError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.run import run_on
from emulation.mininet.switch_processes import switches
from emulation.mininet.targets import BMV2
from emulation.mininet.targets.bmv2 import PROGRAM
from emulation.mininet.targets.bmv2_queues import FIRST_THRIFT_PORT
from emulation.programs.switch_program import Size, SwitchProgram, built_in
from fattree.experiment.model import Controller, Failures, Scenario
from fattree.policies import POLICIES

pytestmark = [pytest.mark.root, pytest.mark.slow]
SLUGS = [
    next(p.slug for p in POLICIES.values() if p.program == program) for program in p4src.programs()
]


@pytest.fixture(autouse=True)
def able():
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not on PATH")
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))


def scenario(policy: str) -> Scenario:
    """Return a short permutation at a rate that a small machine keeps up with."""
    fabric = {"k": 4, "rate_gbps": 0.002, "latency_ns": 100}
    return Scenario(policy=policy, fabric=fabric, collective={"message_bytes": 16 * 4096})


@pytest.mark.parametrize("policy", SLUGS)
def test_every_program_carries_a_permutation(policy, tmp_path):
    with mininet_fabric(scenario(policy), Setup(BMV2, folder=tmp_path / "ofan")) as fabric:
        outcome = run_on(fabric)
    assert len(outcome.flows) == 16
    assert outcome.accounts.unaccounted == outcome.accounts.dropped == outcome.accounts.lost == 0


def test_a_dead_link_is_routed_around_and_its_entries_come_back(tmp_path):
    with mininet_fabric(scenario("ofan"), Setup(BMV2, folder=tmp_path / "ofan")) as fabric:
        before = [fabric.entries(switch) for switch in range(fabric.tree.switches)]
        fabric.controller.convergence_ps = 0
        fabric.change_links(LinkChange(down=frozenset({0})))
        fabric.loop.run(
            lambda: bool(fabric.installations) and fabric.installations[-1].took_ps is not None
        )
        assert run_on(fabric).accounts.lost == 0
        fabric.change_links(LinkChange(up=frozenset({0})))
        fabric.loop.run(lambda: fabric.installations[-1].took_ps is not None)
        assert [fabric.entries(switch) for switch in range(fabric.tree.switches)] == before


@pytest.mark.parametrize("detection", ["announced", "probe"])
def test_a_link_loses_a_share_of_packets_and_may_fail_as_well(detection, tmp_path):
    lossy = scenario("ofan").model_copy(
        update={
            "failures": Failures(losses=({"link": "edge0_0-agg0_0", "share": 0.1},)),
            "controller": Controller(detection=detection),
        },
        deep=True,
    )
    with mininet_fabric(lossy, Setup(BMV2, folder=tmp_path / "ofan")) as fabric:
        outcome = run_on(fabric)
        assert outcome.accounts.lost > 0 and outcome.accounts.unaccounted == 0
        assert not fabric.routed
        fabric.change_links(LinkChange(down=frozenset({0})))
        fabric.change_links(LinkChange(up=frozenset({0})))
        assert run_on(fabric).accounts.unaccounted == 0


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on PATH")
def test_p4cs_json_runs_as_well(tmp_path):
    with mininet_fabric(
        scenario("ofan"), Setup(BMV2, folder=tmp_path / "ofan", compiler="p4c")
    ) as fabric:
        assert run_on(fabric).accounts.unaccounted == 0


def test_a_switch_that_dies_is_named(tmp_path):
    with mininet_fabric(scenario("ofan"), Setup(BMV2, folder=tmp_path / "ofan")) as fabric:
        os.kill(fabric.switches.processes.pids["core1_1"], 9)
        with pytest.raises(EmulationError, match="core1_1 was ended by SIGKILL"):
            run_on(fabric)


def test_a_taken_port_is_named_with_the_words_of_the_log(network, tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", FIRST_THRIFT_PORT + 5))
        taken.listen()
        # BMv2 ends then; with some versions of gRPC it hangs instead, and its queues cannot be set.
        with (
            pytest.raises(StartError, match=rf"^edge2_1\b.*{FIRST_THRIFT_PORT + 5}"),
            switches(scenario("ofan"), BMV2, tmp_path),
        ):
            pass


def test_a_program_that_bmv2_refuses_is_named(tmp_path):
    broken = SwitchProgram(b"{}", built_in("ofan", Size(2)).pipeline)
    setup = Setup(BMV2, broken, folder=tmp_path / "ofan")
    with (
        pytest.raises(ControllerError, match=r"^(edge|agg|core)\d_\d: .+$"),
        mininet_fabric(scenario("ofan"), setup),
    ):
        pass
