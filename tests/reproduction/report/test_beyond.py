"""The report beyond the paper: its page from runs and from data, and its criteria as functions."""

import json
import re
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from fattree.demand.workloads.file import read_workload
from fattree.experiment.model import Scenario
from fattree.texts.shipped import EXPERIMENTS
from ofan import cli
from reproduction.figures.beyond import collectives, controls, fabrics, faults, training
from reproduction.figures.beyond.shared import OTHERS
from reproduction.report.contents import EDITIONS
from reproduction.report.figure import FAILS, FEW, HOLDS, PARTLY, Data, Outcome, Preset
from reproduction.report.statements import STATEMENTS
from sim import run
from tests.reproduction.report.made_up import runs

# The cheapest of its figures.
TINY = ("--beyond", "--quick", "--figure", "controls", "--jobs", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beyond")
    done = CliRunner().invoke(cli, ["report", *TINY, "--output", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    assert sum(json.loads(done.stdout)["counts"].values()) == len(STATEMENTS)
    return folder


def test_the_page_is_of_statements_of_ours(made: Path) -> None:
    page = (made / "index.html").read_text()
    assert EDITIONS["beyond"].title.replace("'", "&#39;") in page
    assert "ofan report --beyond --quick" in page
    assert "The paper:" not in page
    assert all(f'id="{number}"' in page for number in STATEMENTS)
    assert page.count("data:image/svg+xml,") == len(list(made.glob("figures/*.svg"))) == 3
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)


def test_it_is_drawn_again_from_data_that_say_of_which_report_they_are(
    made: Path, tmp_path: Path
) -> None:
    arguments = ["report", "--data", str(made / "data"), "--figure", "controls"]
    done = CliRunner().invoke(cli, [*arguments, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    pictures = [str(path.relative_to(made)) for path in made.glob("figures/*.svg")]
    for name in ("index.html", "data/claims.csv", "data/made_with.json", *pictures):
        assert (made / name).read_bytes() == (tmp_path / name).read_bytes(), name


@pytest.mark.slow
def test_all_of_its_figures_are_drawn_and_decide_all_statements(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        cli, ["report", "--beyond", "--quick", "--jobs", "2", "--output", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    rows = pl.read_csv(tmp_path / "data" / "claims.csv")
    assert set(rows["claim"]) == set(STATEMENTS)
    assert set(rows["verdict"]) == {FEW}
    assert "Incomplete" not in (tmp_path / "index.html").read_text()


def test_data_of_the_paper_are_not_beyond_it(tmp_path: Path) -> None:
    made = {"preset": {"level": "quick", "first_seed": 1}, "wall_s": 0, "cpu_s": 0, "runs": 0}
    rest = {"seeds": "none", "environment": {}, "missing": {}}
    (tmp_path / "made_with.json").write_text(json.dumps(made | rest))
    done = CliRunner().invoke(cli, ["report", "--beyond", "--data", str(tmp_path)])
    assert "--beyond: that data is of the paper's report" in done.output


def test_data_name_no_folder_of_the_machine_that_made_them() -> None:
    scenario = training.scenarios(Preset("quick"))[0]
    record = run(Scenario(fabric={"k": 2})).record  # type: ignore[arg-type]
    assert Path(scenario.collective.file or "").is_file()
    frame = Data(Preset("quick"), (scenario,), (record,)).frame
    assert frame["collective.file"].to_list() == ["step_dense_128.parquet"]


@pytest.mark.parametrize(
    ("config", "file", "options"),
    [
        ("llama_405b", "step_dense_128", ()),
        ("deepseek_v3", "step_moe_128", ("--ep", "4")),
    ],
)
def test_steps_are_what_their_commands_make(
    config: str, file: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    made = tmp_path / "step.parquet"
    sizes = ("--gpus", "128", "--tp", "8", "--pp", "4", *options, "--batch", "64", "--scale", "512")
    command = ["workload", "from-model", str(EXPERIMENTS / f"{config}.json"), str(made), *sizes]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    (graph, about), (kept, kept_about) = (
        read_workload(str(path)) for path in (made, EXPERIMENTS / f"{file}.parquet")
    )
    # Without the sentence, which by now has more about a model.
    assert replace(about, about="") == replace(kept_about, about="")
    for graph_field in fields(graph):
        assert np.array_equal(getattr(graph, graph_field.name), getattr(kept, graph_field.name)), (
            graph_field.name
        )


def test_an_incast_is_measured_against_its_one_link() -> None:
    scenario = next(
        candidate for candidate in controls.scenarios(Preset("quick")) if "8_to_1" in candidate.name
    )
    result = run(scenario)
    frame = controls.with_need(Data(Preset("quick"), (scenario,), (result.record,)).frame)
    need_ps = 8 * 512 * scenario.slot_ps
    assert frame["over_need"][0] == pytest.approx(result.record.sending_cct_ps / need_ps - 1)


# Ten seeds around a mean: none is exactly on it, and their interval is 0.26 wide on either side.
WOBBLE = tuple(np.linspace(-0.35, 0.35, 10) / 100)


def around(**percents: float) -> pl.DataFrame:
    """Return ten runs of every load balancer around these increases in per cent."""
    values = {
        policy: [value / 100 + wobble * (1 + number % 3) for wobble in WOBBLE]
        for number, (policy, value) in enumerate(percents.items())
    }
    return runs(values, hosts=128, max_queue_packets=6.0, freezes=12)


def level(policies: Iterable[str], value: float, **percents: float) -> pl.DataFrame:
    """Return the same with one value for several others."""
    return around(**(dict.fromkeys(policies, value) | percents))


@pytest.mark.parametrize(
    ("themis", "outcome"),
    # The last three fabrics as the first: a fabric that is not decided leaves the claim open.
    [(5.0, HOLDS), (2.0, FEW), (1.0, PARTLY)],
)
def test_b01_ofan_is_ahead_of_each_other_on_each_fabric(themis: float, outcome: Outcome) -> None:
    frames = {name: level(OTHERS, 5.0, ofan=2.0) for name in fabrics.FABRICS[1:]}
    first = level(OTHERS, 5.0, themis=themis, ofan=2.0)
    judgement = fabrics.ahead_everywhere({fabrics.FAT_TREE: first} | frames)
    assert judgement.verdict == outcome
    assert judgement.seeds == 10


@pytest.mark.parametrize(
    ("large", "outcome"), [(12.0, HOLDS), (7.0, FAILS), (7.5, HOLDS), (3.0, FAILS)]
)
def test_b02_the_lead_grows_from_the_smallest_to_the_largest(
    large: float, outcome: Outcome
) -> None:
    sizes = [
        around(switch_pkt_ar=lead + 2, ofan=2.0).with_columns(hosts=pl.lit(hosts))
        for hosts, lead in ((16, 5.0), (128, 9.0), (1024, large - 2))
    ]
    frame = pl.concat(sizes)
    assert fabrics.lead_grows(dict.fromkeys(fabrics.FABRICS, frame)).verdict == outcome


@pytest.mark.parametrize(
    ("per_edge", "per_host", "outcome"),
    [(30.0, 2.0, HOLDS), (30.0, 20.0, PARTLY), (5.0, 20.0, FAILS), (30.0, 10.0, PARTLY)],
)
def test_b03_pointers_per_edge_turn_the_advantage(
    per_edge: float, per_host: float, outcome: Outcome
) -> None:
    beside = around(switch_pkt_ar=10.0, ofan=per_host)
    assert fabrics.pointers(beside, around(ofan=per_edge)).verdict == outcome


@pytest.mark.parametrize(("gap", "outcome"), [(0.2, HOLDS), (5.0, FAILS), (3.0, FEW)])
def test_b04_rotations_are_closer_on_two_levels(gap: float, outcome: Outcome) -> None:
    three = around(host_dr=5.0, themis=5.0, ofan=2.0)
    two = around(host_dr=2 + gap, themis=2 + gap, ofan=2.0)
    frames = dict.fromkeys(fabrics.FABRICS, two) | {fabrics.FAT_TREE: three}
    assert fabrics.closer_on_two_levels(frames).verdict == outcome


@pytest.mark.parametrize(("tree", "outcome"), [(5.0, HOLDS), (160.0, FAILS), (100.0, FAILS)])
def test_b07_trees_leave_less(tree: float, outcome: Outcome) -> None:
    frames = around(flow=tree, ofan=2.0), around(flow=100.0, ofan=2.0)
    assert collectives.trees_leave_less(*frames).verdict == outcome


@pytest.mark.parametrize(("flow", "outcome"), [(2.0, HOLDS), (5.0, PARTLY), (3.0, FEW)])
def test_b06_all_are_alike_in_a_packed_ring(flow: float, outcome: Outcome) -> None:
    frame = level(collectives.SHOWN, 2.0, flow=flow)
    assert collectives.nothing_to_balance(frame).verdict == outcome


@pytest.mark.parametrize(("host_dr", "outcome"), [(2.1, HOLDS), (3.0, FEW), (9.0, FAILS)])
def test_b08_rotations_are_within_a_point(host_dr: float, outcome: Outcome) -> None:
    frame = around(host_dr=host_dr, themis=2.0, ofan=2.0)
    assert collectives.rotations_alike({"ring": frame}).verdict == outcome


@pytest.mark.parametrize(
    ("packets", "flow", "outcome"),
    [(2.1, 9.0, HOLDS), (2.1, 2.0, PARTLY), (9.0, 9.0, PARTLY), (9.0, 2.0, FAILS)],
)
def test_b09_packet_schemes_are_within_a_hundredth_of_the_step(
    packets: float, flow: float, outcome: Outcome
) -> None:
    frame = level(training.SHOWN, packets, flow=flow, ofan=2.0)
    assert training.hardly_matters(frame).verdict == outcome


@pytest.mark.parametrize(("adaptive", "outcome"), [(9.0, HOLDS), (2.0, FAILS), (1.0, FAILS)])
def test_b10_less_is_exposed(adaptive: float, outcome: Outcome) -> None:
    frame = level(training.SHOWN, 9.0, switch_pkt_ar=adaptive, ofan=2.0)
    frame = frame.with_columns(compute_ps=pl.lit(14_000_000))
    assert training.less_exposed({"packed": training.with_exposed(frame)}).verdict == outcome


@pytest.mark.parametrize(("mixture", "outcome"), [(12.0, HOLDS), (4.0, FEW), (2.0, FAILS)])
def test_b11_a_mixture_gains_more(mixture: float, outcome: Outcome) -> None:
    step = {
        # Another order, another wobble: equal steps would be equal to the last bit.
        training.MIXTURE: around(ofan=2.0, flow=mixture),
        training.DENSE: around(flow=4.0, ofan=2.0),
    }
    frames = {name: step[name.partition(",")[0]] for name in training.PARTS}
    assert training.worth_more(frames).verdict == outcome


@pytest.mark.parametrize(("nscc", "outcome"), [(5.0, HOLDS), (10.0, FAILS), (15.0, FAILS)])
def test_b19_nscc_is_ahead_of_mswift(nscc: float, outcome: Outcome) -> None:
    means = {"fixed rate": 20.0, "MSwift": 10.0, "NSCC": nscc}
    frames = {control: level(controls.SHOWN, mean) for control, mean in means.items()}
    frames["NSCC"] = level(controls.SHOWN[::-1], nscc)
    assert controls.nscc_ahead(frames).verdict == outcome


@pytest.mark.parametrize(
    ("nscc", "fixed", "outcome"), [(5.0, 20.0, HOLDS), (15.0, 20.0, PARTLY), (15.0, 5.0, FAILS)]
)
def test_b20_bitmap_needs_a_transport_that_slows_down(
    nscc: float, fixed: float, outcome: Outcome
) -> None:
    values = {"fixed rate": fixed, "MSwift": 10.0, "NSCC": nscc}
    frames = {name: around(uet_bitmap=value, host_pkt=10.0) for name, value in values.items()}
    assert controls.bitmap(frames).verdict == outcome


def of_rtts(policies: Iterable[str], **round_trips: float) -> pl.DataFrame:
    """Return ten runs of load balancers, 50 us and so many round trips long."""
    rtt = Scenario().zero_load_rtt_ps / 17_000_000
    return level(policies, 300.0, **{name: 300 + 100 * n * rtt for name, n in round_trips.items()})


@pytest.mark.parametrize(("ofan", "outcome"), [(1.0, HOLDS), (0.1, PARTLY), (2.0, PARTLY)])
def test_b15_a_loss_costs_a_round_trip(ofan: float, outcome: Outcome) -> None:
    costs = dict.fromkeys(("host_dr", "themis", "host_pkt", "switch_pkt_ar"), 1.0)
    lossy = of_rtts(faults.SHOWN, **costs, ofan=ofan, flow=30.0, host_pkt_ar=30.0)
    assert faults.losses(lossy, of_rtts(faults.SHOWN)).verdict == outcome


@pytest.mark.parametrize(
    ("late", "outcome"), [((1.0, 1.0), HOLDS), ((1.0, 5.0), PARTLY), ((2.0, 2.0), FAILS)]
)
def test_b13_rotations_are_ahead_when_routes_are_late(
    late: tuple[float, float], outcome: Outcome
) -> None:
    frames = {
        fault: around(ofan=2.0, host_dr=value, themis=value).with_columns(
            fct_p50_ps=pl.col("cct_ps"), fct_p999_ps=pl.col("cct_ps")
        )
        for fault, value in zip((faults.AGG, faults.CORE), late, strict=True)
    }
    assert faults.behind_when_late(frames).verdict == outcome


@pytest.mark.parametrize(
    ("unseen", "weighed", "outcome"),
    [(1.0, 9.0, HOLDS), (5.0, 9.0, PARTLY), (5.0, 1.0, FAILS), (1.0, 2.0, PARTLY)],
)
def test_b17_a_slow_link_turns_the_advantage_until_it_is_weighed(
    unseen: float, weighed: float, outcome: Outcome
) -> None:
    frames = (level(faults.SHOWN, value, ofan=2.0) for value in (weighed, unseen))
    assert faults.slow(*frames).verdict == outcome


@pytest.mark.parametrize(
    ("adaptive", "without", "outcome"),
    [(9.0, 5.0, HOLDS), (9.0, 20.0, PARTLY), (1.0, 5.0, FAILS), (3.0, 0.5, PARTLY)],
)
def test_b16_freezing_makes_hosts_that_adapt_the_slowest(
    adaptive: float, without: float, outcome: Outcome
) -> None:
    frame = level(faults.SHOWN, 3.0, host_pkt_ar=adaptive)
    judgement = faults.frozen({faults.CORE: frame}, {faults.CORE: around(host_pkt_ar=without)})
    assert judgement.verdict == outcome
