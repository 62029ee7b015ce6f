"""Figures as data: scenarios, names, shared runs, and the report from command line to page."""

import html
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import polars as pl
import pytest
from click.testing import CliRunner

from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.texts.looks import LOOKS
from ofan import cli
from reproduction.report.claims import CLAIMS
from reproduction.report.contents import BEYOND, EDITIONS, FIGURES, Edition, figure
from reproduction.report.figure import (
    OPEN,
    VARIANTS,
    Data,
    Level,
    Measured,
    Preset,
    grid,
    nested,
    slug,
    variant_of,
)
from reproduction.report.gather import batches, first_look
from reproduction.report.page import embedded
from sim.sweeps.cost import packet_hops
from tests.reproduction.report.conftest import TINY, Report


def test_a_grid_has_every_combination_once() -> None:
    scenarios = grid(
        {"name": "part a", "collective__matrix": "all_to_all"},
        ("ofan", "jsq"),
        range(1, 4),
        fabric__k=(4, 6),
    )
    assert len({scenario.model_dump_json() for scenario in scenarios}) == 12
    assert {scenario.name for scenario in scenarios} == {"part_a"}


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="no setting 'colour'"):
        nested({"colour": 1})


@pytest.mark.parametrize("name", [*FIGURES, *BEYOND])
def test_every_figure_has_a_name_and_runs_in_every_preset(name: str) -> None:
    chosen = figure(name)
    assert chosen.name == name
    assert (
        len(chosen.scenarios(Preset("quick")))
        <= len(chosen.scenarios(Preset("default")))
        <= len(chosen.scenarios(Preset("full")))
    )


@pytest.mark.parametrize(
    ("slug", "level", "limit"),
    [
        ("paper", "quick", 2e9),
        ("paper", "default", 25e9),
        ("beyond", "quick", 1e9),
        pytest.param("beyond", "default", 15e9, marks=pytest.mark.slow),
    ],
)
def test_presets_cost_what_they_promise(
    slug: str, level: Level, limit: float, tmp_path: Path
) -> None:
    figures = list(map(figure, EDITIONS[slug].figures))
    all_batches = batches(figures, first_look(figures, Preset(level)), tmp_path)
    cost = sum(
        packet_hops(scenario) for batch in all_batches.values() for scenario in batch.scenarios
    )
    assert cost < limit


def test_a_scenario_of_two_figures_runs_once(tmp_path: Path) -> None:
    chosen = [figure("baseline"), figure("failure_rate")]
    scenarios = batches(chosen, first_look(chosen, Preset("quick")), tmp_path)["runs"].scenarios
    assert len(scenarios) < sum(
        len(chosen_figure.scenarios(Preset("quick"))) for chosen_figure in chosen
    )


def test_another_first_seed_asks_for_other_runs() -> None:
    seeds = {scenario.seed for scenario in figure("baseline").scenarios(Preset("quick", 100))}
    assert seeds == {100, 101, 102}


def test_every_scheme_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == {*POLICIES, *VARIANTS}
    assert len({(ink, marker) for ink, marker, _ in LOOKS.values()}) == len(LOOKS)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_keeps_its_name_in_frames(name: str) -> None:
    (scenario,) = grid({}, (name,), (1,))
    assert scenario.policy == VARIANTS[name].policy
    assert variant_of(scenario) == name


def test_measured_values_are_columns() -> None:
    scenario = Scenario(fabric={"k": 2})  # type: ignore[arg-type]
    from sim import run

    measured = Measured(**run(scenario).record.model_dump(), values={"loads": (1.0, 2.0)})
    frame = Data(Preset("quick"), (scenario,), (measured,)).frame
    assert frame["loads"].to_list() == [[1.0, 2.0]]
    assert frame["fabric.k"].to_list() == [2]


def test_parts_have_names_that_scenarios_may_have() -> None:
    assert slug("1 % failed links, G = 0") == "1_failed_links_G_0"


def test_report_from_command_line_to_page(tiny: Report) -> None:
    folder = tiny.folder
    page = (folder / "index.html").read_text()
    assert page.count("data:image/svg+xml,") == len(list((folder / "figures").glob("*.svg"))) > 0
    assert all(f'id="{number}"' in page for number in CLAIMS)
    # Nothing is loaded from elsewhere; links lead to the paper alone.
    assert not re.search(r'src="(?!data:)', page)
    assert {*re.findall(r'href="([^"#]+)', page)} == {"https://arxiv.org/abs/2507.21372v2"}
    data = {path.name for path in (folder / "data").iterdir()}
    assert data == {"claims.csv", "made_with.json", "invariant.parquet", "timeline.parquet"}
    counts = json.loads(tiny.said)["counts"]
    assert sum(counts.values()) == len(CLAIMS)


@pytest.mark.slow
def test_all_figures_are_drawn_and_decide_all_claims(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["report", "--quick", "--jobs", "2", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    rows = pl.read_csv(tmp_path / "data" / "claims.csv")
    assert set(rows["claim"]) == set(CLAIMS)
    assert OPEN not in set(rows["verdict"])
    assert "Incomplete" not in (tmp_path / "index.html").read_text()


def test_the_same_report_again_runs_nothing(
    tiny: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny.folder, tmp_path, dirs_exist_ok=True)
    arguments = ["report", "--quick", "--figure", "timeline", "--jobs", "1"]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("ran again")

    monkeypatch.setattr("reproduction.report.gather.sweeps.sweep", refuse)
    done = CliRunner().invoke(cli, [*arguments, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output


def test_drawing_what_is_not_finished_says_so(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli, ["report", "--quick", "--figure", "baseline", "--draw-only", "--output", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "none of its runs is finished" in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figure", "no-such"], "no-such"),
        (["--jobs", "0"], "jobs"),
        (["--seed", "-1"], "seed"),
        (["--output", "/dev/null/x"], "null"),
        (["--beyond"], "--figure timeline goes without --beyond"),
        (["--figure", "fabrics"], "--figure fabrics goes with --beyond"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from ofan import main

    with pytest.raises(SystemExit) as stopped:
        main(["report", "--quick", "--figure", "timeline", *arguments])
    lines = capsys.readouterr().err.splitlines()
    assert stopped.value.code == 2
    assert len([line for line in lines if line.startswith("ofan:")]) == 1
    assert message in lines[-1]


@pytest.mark.parametrize("edition", EDITIONS.values())
def test_every_claim_has_a_plain_sentence(edition: Edition) -> None:
    assert list(edition.plain) == list(edition.claims)
    assert all(text.endswith(".") and len(text) <= 100 for text in edition.plain.values())


def test_a_report_is_drawn_again_from_its_data_alone(tiny: Report, tmp_path: Path) -> None:
    first, again = tiny.folder, tmp_path / "again"
    done = CliRunner().invoke(
        cli, ["report", "--data", str(first / "data"), *TINY[1:], "--output", str(again)]
    )
    assert done.exit_code == 0, done.output
    files = [str(path.relative_to(first)) for path in first.glob("figures/*.svg")]
    assert len(files) >= 3
    for name in (*files, "data/claims.csv", "data/made_with.json", "index.html"):
        assert (first / name).read_bytes() == (again / name).read_bytes(), name


def test_data_knows_its_preset(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["report", "--data", str(tmp_path), "--quick"])
    assert "--data says which preset" in done.output
    assert (
        "no data of a report" in CliRunner().invoke(cli, ["report", "--data", str(tmp_path)]).output
    )


def test_an_embedded_picture_is_the_file_whatever_stands_in_it(tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><!-- "seen" by nobody -->\n'
        '<g id="a&amp;b" style="fill: #fff; width: 50%"><text x="0.01562512">it\'s</text></g></svg>'
    )
    uri = embedded(path)
    assert '"' not in uri and "nobody" not in uri
    group = ElementTree.fromstring(unquote(html.unescape(uri).partition(",")[2]))[0]
    assert group.attrib == {"id": "a&b", "style": "fill: #fff; width: 50%"}
    assert (group[0].text, group[0].get("x")) == ("it's", "0.0156")
