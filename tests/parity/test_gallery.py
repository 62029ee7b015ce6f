"""Published load balancers of `experiments/gallery`: their rules, in virtual time."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulation.programs.switch_program import Size, load_program
from emulation.virtual import simulated
from fattree.experiment.model import Scenario
from fattree.texts.shipped import EXPERIMENTS
from sim.runs.results import Result
from tests.parity.own_programs import of_result
from tests.parity.test_pauses import of_virtual
from tests.python_network.fabric import PythonFabric

GALLERY = EXPERIMENTS / "gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.p4"))
MOST_LINES = 60
# A packet of 4096 bytes of payload, as the program counts it.
FRAME = Scenario().data_bytes
CORE_LINK = {"link": "agg0_0-core0_0", "down_ns": 0}


def scenario(name: str, program: Path | None = None, **tables: Any) -> Scenario:
    settings = {"fabric": {"k": 4}, "collective": {"message_bytes": 64 * 4096}, "seed": 2, **tables}
    program = program or GALLERY / f"{name}.p4"
    return Scenario.model_validate({"policy": "simple_rr", "program": str(program), **settings})


def one_flow(name: str, packets: int, source: int, destination: int, **tables: Any) -> list[int]:
    """Return how many packets of a flow alone took each uplink of its edge."""
    pair = {
        "matrix": "pairs",
        "pairs": [[source, destination]],
        "message_bytes": packets * 4096,
    }
    result = simulated.run(scenario(name, collective=pair, **tables))
    tree = result.scenario.tree
    edge = tree.edge_of_host(source)
    first = tree.first_port(edge) + tree.hosts_per_edge
    taken: list[int] = result.ports.packets[first : first + tree.edge_uplinks].tolist()
    return taken


def uplink_queue(result: Result) -> float:
    """Return the longest queue of any edge's uplink, in bytes."""
    tree = result.scenario.tree
    ports = np.arange(tree.first_port(tree.edges)).reshape(tree.edges, -1)
    return float(result.ports.max_queue_bytes[ports[:, tree.hosts_per_edge :]].max())


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_short_and_names_its_source(name: str) -> None:
    lines = (GALLERY / f"{name}.p4").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    assert any(str(year) in line for line in lines[:4] for year in range(1991, 2027))


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_p4c_compiles_each_program(name: str, tmp_path: Path) -> None:
    program, size = GALLERY / f"{name}.p4", Size(uplinks=2)
    assert load_program(program, size, compiler="p4c").pipeline.tables.keys() == (
        load_program(program, size).pipeline.tables.keys()
    )


@pytest.mark.parametrize(
    "events",
    [pytest.param([], marks=pytest.mark.slow), [CORE_LINK]],
    ids=["whole", "a link less"],
)
@pytest.mark.parametrize("name", NAMES)
def test_simulator_and_virtual_network_agree(name: str, events: list[dict[str, Any]]) -> None:
    drawn = scenario(name, failures={"events": events})
    result = simulated.run(drawn)
    program = simulated.program_of(drawn)
    outcome = PythonFabric(drawn.model_copy(update={"program": None}), program).run()

    assert [flow.done_ps for flow in outcome.flows] == result.done_ps.tolist()
    assert of_virtual(outcome)["ports"] == of_result(result)
    assert outcome.accounts.unaccounted == 0


# Edges below and at the size of a cell of eight packets: 36 cells of 7 packets and 4 packets more.
@pytest.mark.parametrize(
    ("cell_bytes", "counts"),
    [(8 * FRAME - 1, {126, 130}), (8 * FRAME, {128}), (1 << 30, {0, 256})],
)
def test_presto_changes_the_uplink_after_each_cell(cell_bytes: int, counts: set[int]) -> None:
    taken = one_flow("presto", 256, 0, 9, defines={"CELL_BYTES": cell_bytes})
    assert sum(taken) == 256 and set(taken) == counts


def test_presto_goes_on_from_slot_to_slot_also_where_schedules_are_longer() -> None:
    # Weights 1 : 2 towards pod 0: three slots, of which each cell takes the next.
    cell = {"CELL_BYTES": FRAME}
    taken = one_flow("presto", 255, 9, 0, failures={"events": [CORE_LINK]}, defines=cell)
    assert sorted(taken) == [85, 170]


def test_weighted_round_robin_has_the_weights_of_the_paths() -> None:
    assert one_flow("weighted_round_robin", 256, 9, 0) == [128, 128]
    taken = one_flow("weighted_round_robin", 255, 9, 0, failures={"events": [CORE_LINK]})
    assert sorted(taken) == [85, 170]


def test_drill_keeps_uplinks_shorter_than_random_choice_and_more_samples_help() -> None:
    message = {"message_bytes": 256 * 4096}
    random = simulated.run(
        Scenario.model_validate(
            {"policy": "rsq", "program": "built-in", "fabric": {"k": 8}, "collective": message}
        )
    )
    two, one_sample = (
        simulated.run(
            scenario("drill", fabric={"k": 8}, collective=message, defines={"SAMPLES": samples})
        )
        for samples in (2, 1)
    )

    assert 3 * uplink_queue(two) < uplink_queue(random)
    assert uplink_queue(two) < uplink_queue(one_sample) < uplink_queue(random)


def test_drill_remembers_its_best_uplink(tmp_path: Path) -> None:
    text = (GALLERY / "drill.p4").read_text(encoding="utf-8")
    remembers = " || remembered == N + 1"
    assert remembers in text
    forgetful = tmp_path / "forgetful.p4"
    forgetful.write_text(text.replace(remembers, ""), encoding="utf-8")

    ends = [
        simulated.run(scenario("drill", program)).done_ps.tolist() for program in (None, forgetful)
    ]
    assert ends[0] != ends[1]


# A fabric of three leaves and two spines. The link from spine 0 down to leaf 1 is slow: leaf 0
# sees it in feedback alone.
TWO_SPINES = {"edges_per_pod": 3, "hosts_per_edge": 2, "aggs_per_pod": 2}
HIDDEN = {
    "degraded": [{"link": "edge0_1-agg0_0", "rate": 0.05}],
    "convergence_rtt": "inf",
}
FLOWS = 20


def late_flows(folder: Path, program: Path, seed: int, defines: dict[str, int]) -> int:
    """Return how many of 20 successive flows take longer than the fast spine needs."""
    lines = [
        f"{flow % 2}->{2 + flow % 2} id {flow + 1} start {flow * 20_000_000} size {8 * 4096}"
        for flow in range(FLOWS)
    ]
    file = folder / "successive.cm"
    file.write_text(f"Nodes 6\nConnections {FLOWS}\n\n" + "\n".join(lines) + "\n")
    result = simulated.run(
        scenario(
            "conga",
            program,
            fabric=TWO_SPINES,
            collective={"matrix": "file", "file": str(file), "start_unit": "ps"},
            defines={"GAP_US": 10, "STEP_SHIFT": 12, **defines},
            failures=HIDDEN,
            seed=seed,
        )
    )
    return int((result.done_ps - result.start_ps > 10_000_000).sum())


def without_feedback(folder: Path) -> Path:
    """Return a file with CONGA that chooses by the load of its own uplinks."""
    text = (GALLERY / "conga.p4").read_text(encoding="utf-8")
    compares = "if (congestion > uplinks.queue##N)"
    assert compares in text
    file = folder / "without_feedback.p4"
    file.write_text(text.replace(compares, "if (false)"), encoding="utf-8")
    return file


def test_conga_avoids_a_slow_link_that_its_feedback_alone_shows(tmp_path: Path) -> None:
    blind = without_feedback(tmp_path)
    slowly = {"FEEDBACK_SHIFT": 12}
    for seed in range(1, 4):
        # The first flows may find the slow link, and packets that still wait there are late.
        assert late_flows(tmp_path, GALLERY / "conga.p4", seed, slowly) <= 2
        assert late_flows(tmp_path, blind, seed, slowly) >= 6


def test_hula_avoids_a_slow_link_that_probes_have_met(tmp_path: Path) -> None:
    # A best hop outlasts the time between two flows, or not.
    lasts, ends = {"HOP_US": 1000}, {"HOP_US": 0}
    for seed in range(1, 4):
        assert late_flows(tmp_path, GALLERY / "hula.p4", seed, lasts) <= 3
        assert late_flows(tmp_path, GALLERY / "hula.p4", seed, ends) >= 6


def test_conga_keeps_the_load_of_a_slow_uplink_below_its_share() -> None:
    slow = {
        "degraded": [{"link": "agg0_0-core0_0", "rate": 0.25}],
        "convergence_rtt": "inf",
    }
    message = {"message_bytes": 256 * 4096}
    result = simulated.run(scenario("conga", fabric={"k": 8}, collective=message, failures=slow))
    tree = result.scenario.tree
    pod = [
        tree.first_port(agg) + tree.downlinks(agg) + uplink
        for agg in range(tree.first_agg, tree.first_agg + tree.aggs_per_pod)
        for uplink in range(tree.agg_uplinks)
    ]
    shares = result.ports.bytes[pod] / result.ports.bytes[pod].sum()
    assert shares[0] == shares.min() < 0.8 / len(pod)
