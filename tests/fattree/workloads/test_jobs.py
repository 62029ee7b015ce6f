"""Jobs and their hosts: names and ranges, placements, one after another."""

from typing import Any

import numpy as np
import pytest

import sim
from fattree.demand.traffic import flows
from fattree.demand.workloads.hosts import hosts_named, placed
from fattree.errors import ExperimentError, TrafficError
from fattree.experiment.model import Collective, Fabric, Job, Scenario, Transport
from fattree.shape.addressing import host_name
from fattree.shape.topology import FatTree
from fattree.texts.experiment_file import parse_experiment
from fattree.texts.experiment_writer import experiment_toml

TREE = FatTree(4)
STEADY = Transport(random_phases=False)
TWO_JOBS = """
[fabric]
k = 4
[[jobs]]
name = "first"
collective = { matrix = "all_reduce", hosts = "pod0", message_bytes = "64KiB" }
[[jobs]]
name = "second"
after = "first"
[jobs.collective]
matrix = "broadcast"
hosts = "edge0_*"
algorithm = "double_tree"
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("h2_0_1", ["h2_0_1"]),
        ("pod1", ["h1_0_0", "h1_0_1", "h1_1_0", "h1_1_1"]),
        ("edge3_1, h0_0_0", ["h3_1_0", "h3_1_1", "h0_0_0"]),
        ("edge1_*", ["h1_0_0", "h1_0_1", "h1_1_0", "h1_1_1"]),
        ("h0-1_1_0-1", ["h0_1_0", "h0_1_1", "h1_1_0", "h1_1_1"]),
    ],
)
def test_hosts_are_named_one_by_one_or_by_range(text: str, names: list[str]) -> None:
    assert [host_name(TREE, host) for host in hosts_named(TREE, text).tolist()] == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pod4", "asks for 4, but the numbers end at 3"),
        ("h0_0_0-2", "asks for 2, but the numbers end at 1"),
        ("h3-2_0_0", "is the name of no host"),
        ("edge1", "'edge1' is no name of hosts: expected names such as"),
        ("rack1", "'rack1' is no name of hosts"),
        ("pod0,", "'' is no name of hosts"),
        ("pod0, h0_1_1", "names h0_1_1 twice"),
    ],
)
def test_what_names_no_host_is_refused(text: str, message: str) -> None:
    with pytest.raises(TrafficError, match=message):
        hosts_named(TREE, text)


def test_rails_put_the_same_gpu_of_all_servers_side_by_side() -> None:
    # Ranks 0 to 3 are server 0; with 8 hosts, GPU 0 of both servers are hosts 0 and 1.
    assert placed(np.arange(8), "rail", 1, 4).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    with pytest.raises(TrafficError, match="whole servers"):
        placed(np.arange(6), "rail", 1, 4)


def test_a_random_placement_is_the_seeds() -> None:
    first, again, of_seed_2 = (
        placed(np.arange(16), "random", seed, 1).tolist() for seed in (1, 1, 2)
    )
    assert first == again != of_seed_2
    assert sorted(of_seed_2) == list(range(16))


def of_jobs(*jobs: Job) -> Scenario:
    return Scenario(fabric=Fabric(k=4), jobs=jobs)


def job(name: str, hosts: str, **settings: Any) -> Job:
    return Job(name=name, collective=Collective(matrix="all_gather", hosts=hosts), **settings)


def test_a_job_begins_at_its_time() -> None:
    both = flows(of_jobs(job("a", "pod0"), job("b", "pod1", start_ns=2.5)))
    assert both.start_ps.tolist() == [0] * 12 + [2_500] * 12


def test_a_host_begins_a_job_when_its_own_part_of_the_other_is_complete() -> None:
    both = flows(of_jobs(job("a", "h0_0_0-1"), job("b", "h0_0_*", after="a")))
    # Two hosts: one step each, which begins or ends at both.
    assert both.source.tolist() == [0, 1, 0, 1]
    assert [sorted(both.waits_for(flow).tolist()) for flow in range(4)] == [[], [], [0, 1], [0, 1]]


def test_hosts_without_a_part_cannot_know_when_it_is_over() -> None:
    with pytest.raises(TrafficError, match="job b: h1_0_0 has no part in the job that it is after"):
        flows(of_jobs(job("a", "pod0"), job("b", "pod1", after="a")))


def test_in_an_incast_all_others_send_to_the_first_host() -> None:
    incast = Collective(matrix="incast", hosts="h1_0_0, edge0_*", message_bytes=5000)
    both = flows(of_jobs(Job(name="a", collective=incast)))
    assert both.source.tolist() == [0, 1, 2, 3]
    assert both.destination.tolist() == [4] * 4
    assert both.packets.tolist() == [2] * 4


def test_an_incast_takes_what_its_receivers_link_takes() -> None:
    incast = Collective(matrix="incast", hosts="pod0, pod1", message_bytes=64 * 4096)
    # With room for all packets: a dropped packet is sent again.
    fabric = Fabric(k=4, queue_bytes=0)
    scenario = Scenario(fabric=fabric, collective=incast, transport=STEADY)
    link_ps = 7 * 64 * scenario.slot_ps
    assert link_ps < sim.run(scenario).cct_ps < link_ps + 2 * scenario.zero_load_rtt_ps


def test_single_flows_are_a_job() -> None:
    single = Collective(matrix="pairs", pairs=((0, 15), (1, 14)), message_bytes=5000)
    both = flows(of_jobs(job("a", "h0_0_0-1"), Job(name="b", collective=single, after="a")))
    assert both.source.tolist()[2:] == [0, 1]
    assert both.destination.tolist()[2:] == [15, 14]
    assert [sorted(both.waits_for(flow).tolist()) for flow in (2, 3)] == [[0, 1], [0, 1]]


def test_keys_of_jobs_go_by_the_jobs_names() -> None:
    settings = ["jobs.first.collective.message_bytes=1MiB", "jobs.second.collective.chunks=3"]
    both = parse_experiment(TWO_JOBS, "x.toml", settings)
    assert both.jobs[0].collective.message_bytes == 1 << 20
    assert both.jobs[1].collective.chunks == 3


def test_the_longest_name_with_dots_is_meant() -> None:
    text = TWO_JOBS.replace('"second"', '"first.start"')
    both = parse_experiment(text, "x.toml", ["jobs.first.start.collective.chunks=3"])
    assert both.jobs[1].collective.chunks == 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("jobs.third.start_ns=1", "jobs.third.start_ns: names no key of a job, .* are first, sec"),
        ("jobs.first=1", "jobs.first: names no key of a job"),
        ("jobs.first.start_ns=-1", "--set jobs.first.start_ns: jobs.first.start_ns = -1: must be"),
        ("jobs.first.chunks=1", "--set jobs.first.chunks: unknown key jobs.first.chunks"),
        ("jobs.first.collective.steps=1", "--set jobs.first.collective.steps: .* has no effect on"),
    ],
)
def test_a_wrong_key_of_a_job_is_named(setting: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=f"^{message}"):
        parse_experiment(TWO_JOBS, "x.toml", [setting])


def test_servers_must_be_equal() -> None:
    uneven = Collective(matrix="all_reduce", algorithm="hierarchical", hosts="edge0_0, h1_0_0")
    with pytest.raises(TrafficError, match="as many hosts on every server"):
        flows(Scenario(fabric=Fabric(k=4), collective=uneven))


def test_jobs_are_read_and_written_back() -> None:
    both = parse_experiment(TWO_JOBS, "x.toml")
    assert both.jobs[0].collective.message_bytes == 65_536
    assert both.jobs[1].after == "first"
    assert parse_experiment(experiment_toml(both), "y.toml") == both


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TWO_JOBS + "[collective]\nmatrix = 'ring'\n", r"give a \[collective\] or \[\[jobs\]\]"),
        (TWO_JOBS.replace('name = "first"', 'name = "third"'), "second is after 'first'"),
        (TWO_JOBS.replace('"second"', '"first"'), "two jobs have the name first"),
        (
            TWO_JOBS.partition("[jobs.c")[0] + "collective = {}",
            "a job's matrix is one of all_reduce",
        ),
        (TWO_JOBS.replace('"edge0_*"', '"edge1_*"'), "h1_0_0 has no part in the job"),
        (TWO_JOBS.replace('after = "first"', 'after = "first"\nstart_ns = 5'), "not both"),
        (TWO_JOBS.replace("algorithm", "steps = 2\nalgorithm"), "steps has no effect on matrix"),
        (TWO_JOBS.replace("double_tree", "direct"), "no broadcast with algorithm"),
    ],
)
def test_what_is_wrong_with_jobs_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=f"^x.toml[:0-9]*: .*{message}"):
        parse_experiment(text, "x.toml")


def test_a_workload_without_a_file_is_refused_by_name() -> None:
    with pytest.raises(TrafficError, match=r"matrix workload needs collective\.file"):
        flows(Scenario(collective=Collective(matrix="workload")))
