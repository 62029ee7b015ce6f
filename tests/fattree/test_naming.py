"""The columns that describe a run: different runs have different rows, equal runs equal rows."""

from pathlib import Path

import pytest

from fattree.experiment.model import (
    Collective,
    Degraded,
    Fabric,
    FailureEvent,
    Failures,
    HostRule,
    Loss,
    Scenario,
)
from fattree.records.naming import faults_text, named, scenario_hash

LINK = "edge0_0-agg0_1"
DEAD = Failures(events=(FailureEvent(link=LINK, down_ns=0),))
SLOW = Failures(degraded=(Degraded(link=LINK, rate=0.5),))
LOSSY = Failures(losses=(Loss(switch="core0_1", share=0.01),))


def test_each_fault_has_a_text() -> None:
    names = [named(Scenario(failures=faults)) for faults in (Failures(), DEAD, SLOW, LOSSY)]
    assert [(faults["events"], faults["degraded"], faults["losses"]) for faults in names] == [
        ("", "", ""),
        (f"{LINK} down_ns=0", "", ""),
        ("", f"{LINK} rate=0.5", ""),
        ("", "", "core0_1 share=0.01"),
    ]


def test_a_text_has_what_is_not_the_default_in_one_order() -> None:
    first = FailureEvent(link=LINK, down_ns=5e3, up_ns=9000, times=3, every_ns=1e9 + 0.5)
    second = Degraded(host="h0_0_0", rate=1 / 3, direction="up")
    texts = (
        f"{LINK} down_ns=5000 up_ns=9000 times=3 every_ns=1000000000.5",
        "h0_0_0 rate=0.333333333333333 direction=up",
    )
    assert faults_text((second, first)) == faults_text((first, second)) == "; ".join(texts)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(failures=DEAD),
        Scenario(failures=SLOW),
        Scenario(failures=LOSSY),
        Scenario(failures=Failures(convergence_rtt=float("inf"))),
        Scenario(seed=2),
        Scenario(policy="jsq"),
        Scenario(fabric=Fabric(latency_ns=501)),
        Scenario(host_rule=HostRule(file="mine.py", text="LIMIT = 1")),
    ],
)
def test_another_run_has_another_hash(scenario: Scenario) -> None:
    assert named(scenario)["scenario_hash"] != named(Scenario())["scenario_hash"]


def test_what_a_run_is_called_is_not_in_its_hash() -> None:
    called = Scenario(name="mine", label="of today")
    assert scenario_hash(called, "ofan") == scenario_hash(Scenario(), "ofan")


def test_a_rule_counts_by_its_text() -> None:
    texts = ("LIMIT = 1", "LIMIT = 2")
    rules = [Scenario(host_rule=HostRule(file="mine.py", text=text)) for text in texts]
    assert len({named(rule)["scenario_hash"] for rule in rules}) == 2


def test_a_traffic_file_counts_by_name_and_content_wherever_it_lies(tmp_path: Path) -> None:
    hashes = []
    for folder, name, text in (
        ("here", "a.cm", "Nodes 16"),
        ("there", "a.cm", "Nodes 16"),
        ("there", "b.cm", "Nodes 16"),
        ("elsewhere", "a.cm", "Nodes 128"),
    ):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        scenario = Scenario(collective=Collective(matrix="file", file=str(path)))
        hashes.append(named(scenario)["scenario_hash"])

    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_a_program_that_ran_instead_of_the_policy_is_in_the_name() -> None:
    """The simulator has it in the scenario, the other networks beside it."""
    simulated = named(Scenario(policy="simple_rr", program="/tmp/mine.p4"))
    emulated = named(Scenario(policy="simple_rr"), "mine.p4")
    assert simulated == emulated
    assert simulated["scenario_hash"] != named(Scenario(policy="simple_rr"))["scenario_hash"]
