"""From numbers to a fabric, to candidates that fit it, and to conditions that it can be in."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import Fabric, Scenario, Settings
from fattree.policies import POLICIES
from sim.choice.candidates import fitting, needs, own_program
from sim.choice.conditions import CONDITIONS, conditions_of
from sim.choice.questions import Question, in_words, three_tiers, two_tiers
from sim.choice.workloads import OWN, STEP, WORKLOADS, workloads_of
from sim.sweeps.cost import packet_hops


@pytest.mark.parametrize(
    ("hosts", "tiers", "oversubscription", "rails"),
    [
        (16, 2, 1, 1),
        (512, 2, 4, 1),
        (512, 2, 1, 8),
        (128, 3, 1, 1),
        (128, 3, 2, 1),
        (1024, 3, 1, 1),
    ],
)
def test_a_fabric_has_the_hosts_and_the_oversubscription(
    hosts: int, tiers: int, oversubscription: int, rails: int
) -> None:
    question = Question(hosts, tiers, oversubscription, rails)
    tree = Settings.model_validate(question.tables()).fabric.tree
    assert tree.hosts == hosts
    assert tree.hosts_per_edge == oversubscription * tree.uplinks(0)
    assert (tree.cores > 0) == (tiers == 3)


def test_known_fabrics_come_out() -> None:
    assert two_tiers(512, 4) == {"edges_per_pod": 16, "hosts_per_edge": 32, "aggs_per_pod": 8}
    assert three_tiers(128, 1) == {"k": 8}
    assert three_tiers(128, 2)["pods"] == 4


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (Question(hosts=509), "no fabric of 2 tiers, 1:1, has 509 hosts"),
        (Question(hosts=30, tiers=3, oversubscription=4), "no fabric of 3 tiers, 4:1"),
        (Question(hosts=100, rails=8), "no multiple of --rails 8"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(question: Question, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        question.tables()


@pytest.mark.parametrize(
    ("fabric", "phrase"),
    [
        ({"k": 4}, "16 hosts: 4 pods, 8 edges of 2 hosts, 8 aggs, 4 cores; 800 Gb/s"),
        (
            {
                "edges_per_pod": 6,
                "hosts_per_edge": 16,
                "aggs_per_pod": 4,
                "rate_gbps": 400,
                "edge_agg_gbps": 800,
            },
            "96 hosts: 6 leaves of 16 hosts, 4 spines; 400 Gb/s (leaf to spine 800)",
        ),
        (
            {"edges_per_pod": 2, "hosts_per_edge": 3, "aggs_per_pod": 2, "planes": 2},
            "12 hosts: 2 leaves of 3 hosts, 2 spines, in each of 2 rails; 800 Gb/s",
        ),
    ],
)
def test_a_fabric_is_described_in_a_phrase(fabric: dict[str, Any], phrase: str) -> None:
    assert in_words(Fabric(**fabric)) == phrase


def test_all_rows_fit_where_all_may_be_changed() -> None:
    assert [candidate.name for candidate in fitting("both", "any")] == list(POLICIES)


def test_what_may_not_be_changed_is_left_out() -> None:
    switches = {candidate.name for candidate in fitting("switches", "any")}
    hosts = {candidate.name for candidate in fitting("hosts", "any")}
    assert {"flow", "ofan"} <= switches and "host_pkt_ar" not in switches
    assert {"flow", "host_pkt_ar"} <= hosts and "ofan" not in hosts
    assert switches | hosts == set(POLICIES)
    assert switches & hosts == {"flow"}


def test_nics_that_take_packets_in_order_have_nothing_that_reorders() -> None:
    assert [candidate.name for candidate in fitting("both", "in-order")] == [
        "flow",
        "subflow",
        "host_flowlet_ar",
    ]
    assert [candidate.name for candidate in fitting("switches", "in-order")] == ["flow"]


def test_mrc_has_no_pauses_unless_it_is_named() -> None:
    lossless = {row.name for row in fitting("both", "any", is_lossless=True)}
    assert set(POLICIES) - lossless == {"mrc", "mrc_srv6"}
    named = fitting("both", "any", ("mrc", "flow"), is_lossless=True)
    assert [row.name for row in named] == ["flow", "mrc"]


def test_needs_are_of_the_place_that_decides() -> None:
    rows = {candidate.name: needs(candidate) for candidate in fitting("both", "any")}
    assert rows["ofan"].cells() == (
        "pointer per destination edge or pod",
        "none",
        "none",
        "take any order",
    )
    assert rows["host_pkt_ar"].cells()[:3] == ("none", "8-entry ring", "UDP source port varies")
    assert rows["host_dr"].headers == "20 bytes in front"
    assert needs(own_program("mine.p4", "jsq", "mine.p4")).reorders is None


def test_every_condition_is_one_that_the_fabric_can_be_in() -> None:
    settings = Settings.model_validate(Question(hosts=16).tables())
    for name, condition in CONDITIONS.items():
        applied = condition.apply(settings)
        assert (applied != settings) == (name != "up"), name
        scenario = Scenario.model_validate(applied.model_dump())
        assert scenario.fabric == settings.fabric


def test_failures_of_a_file_are_a_condition_of_their_own() -> None:
    settings = Settings.model_validate({"fabric": {"k": 4}, "failures": {"rate": 0.01}})
    assert list(conditions_of(settings)) == ["file", *CONDITIONS]
    assert CONDITIONS["up"].apply(settings).failures.rate == 0
    assert list(conditions_of(settings, ["file", "jitter"])) == [*CONDITIONS][:-1]


@pytest.mark.parametrize(
    "question", [Question(512, 2, 4), Question(128, 3), Question(512, rails=8)]
)
def test_every_host_sends_about_as_much_in_every_workload(
    question: Question, tmp_path: Path
) -> None:
    settings = Settings.model_validate(question.tables())
    workloads, left_out = workloads_of(settings, tmp_path)
    assert left_out == [] and tuple(workloads) == WORKLOADS
    hops = {
        name: packet_hops(Scenario.model_validate(workload.model_dump()))
        for name, workload in workloads.items()
    }
    permutation = hops.pop("permutation")
    # A quarter of it, in packets of which some are not full.
    assert all(permutation / 8 < count < permutation for count in hops.values()), hops


def test_a_step_that_does_not_fit_is_left_out_with_its_reason(tmp_path: Path) -> None:
    settings = Settings.model_validate(Question(hosts=16).tables())
    workloads, left_out = workloads_of(settings, tmp_path)
    assert STEP not in workloads and OWN not in workloads
    assert left_out == [
        "step is left out: 16 hosts are no two or more replicas of 8 GPUs in 4 stages"
    ]


@pytest.mark.parametrize("counts", [two_tiers, three_tiers])
@pytest.mark.parametrize("oversubscription", [1, 2, 3, 4])
def test_numbers_of_hosts_that_are_named_do_fit(
    counts: Callable[[int, int], dict[str, int]], oversubscription: int
) -> None:
    for hosts in (2, 3, 7, 97, 255, 256, 1001):
        with suppress(ExperimentError):
            counts(hosts, oversubscription)
            continue

        with pytest.raises(ExperimentError) as refusal:
            counts(hosts, oversubscription)

        named = re.findall(r"\d+", str(refusal.value).partition("another number (")[2])
        assert named
        for number in named:
            counts(int(number), oversubscription)
