"""Trimming in the simulator: nothing where no queue is full, threads, and refusals."""

from typing import Any

import pytest

import sim
from fattree.errors import ExperimentError
from fattree.experiment.model import (
    AgentPacket,
    Collective,
    Fabric,
    Job,
    Packets,
    Scenario,
    Transport,
)
from tests.parity.scenarios import TRIMMING, TRIMMING_SLOW


def results(scenario: Scenario, threads: int = 1) -> dict[str, Any]:
    result = sim.run(scenario, threads=threads)
    ports = {name: getattr(result.ports, name).tolist() for name in ("trimmed", "packets", "bytes")}
    return {"done": result.done_ps.tolist(), "sent": result.transmissions.tolist(), **ports}


@pytest.mark.parametrize("policy", ["ofan", "host_dr", "jsq", "host_pkt_ar"])
def test_it_changes_nothing_where_no_queue_is_full(policy: str) -> None:
    plain = Scenario(
        policy=policy,
        fabric=Fabric(k=4),
        collective=Collective(message_bytes=40 * 4096),
        transport=Transport(recovery="sack", congestion="mswift"),
    )
    trimming = plain.model_copy(
        update={"transport": plain.transport.model_copy(update={"trimming": True})}
    )
    assert results(trimming) == results(plain)


@pytest.mark.parametrize("settings", [TRIMMING, TRIMMING_SLOW], ids=["whole links", "slow links"])
def test_threads_change_nothing(settings: dict[str, Any]) -> None:
    scenario = Scenario(
        policy="ofan", transport=Transport(recovery="sack", trimming=True), **settings
    )
    assert results(scenario, threads=3) == results(scenario)


def test_an_incast_is_cut_and_never_dropped_and_sends_again_what_was_cut_alone() -> None:
    scenario = Scenario(
        transport=Transport(recovery="sack", congestion="nscc", trimming=True),
        **{**TRIMMING, "fabric": Fabric(k=4, queue_bytes=100_000)},
    )
    result = sim.run(scenario)
    trimmed = result.ports.trimmed.sum()
    assert trimmed > 0 and result.ports.dropped.sum() == 0
    assert result.transmissions.sum() == 15 * 24 + trimmed
    assert result.record.trimmed == trimmed


def test_collectives_and_jobs_run_over_it() -> None:
    reduce = Collective(matrix="all_reduce", message_bytes=1 << 18, algorithm="ring")
    spread = Collective(matrix="all_to_all", message_bytes=1 << 16, algorithm="direct")
    scenario = Scenario(
        fabric=Fabric(k=4, queue_bytes=12_000),
        jobs=(Job(name="a", collective=reduce), Job(name="b", collective=spread)),
        transport=Transport(recovery="sack", congestion="nscc", trimming=True),
    )
    result = sim.run(scenario)
    assert result.ports.trimmed.sum() > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"fabric": {"queue_bytes": 0}}, "trimming needs a buffer limit"),
        (
            {"packets": Packets(payload_bytes=256, ack_bytes=318)},
            "cuts packets to packets.ack_bytes = 318",
        ),
        ({"agent_packet": AgentPacket(file="p.py", text="x")}, "needs NACKs"),
    ],
)
def test_what_cannot_be_trimmed_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ExperimentError, match=said):
        Scenario(transport=Transport(trimming=True), **settings)
