"""Pictures and tables show the measurements of the runs, with labels and units."""

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from matplotlib.colors import is_color_like, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from rich.console import Console

from emulation.outcomes import plots
from emulation.outcomes.folder import record
from emulation.outcomes.outcome import Outcome, PortResult, QueueSamples
from emulation.outcomes.plots import (
    cdf_figure,
    demo_figure,
    draw_loads,
    draw_queues,
    experiment_figures,
    flow_times,
)
from emulation.outcomes.tables import results_table
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from fattree.records.record import rare_legend
from fattree.texts.looks import LOOKS, looks_of
from reproduction.report import style

FAILURES = Failures(
    events=(FailureEvent(link="agg0_0-core0_0", down_ns=1500),), convergence_rtt=0.5
)


def run(policy: str, failures: Failures | None = None) -> Outcome:
    small = Collective(message_bytes=16 * 4096)
    return VirtualFabric(
        Scenario(
            policy=policy, fabric=Fabric(k=4), collective=small, failures=failures or Failures()
        )
    ).run()


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [run("flow"), run("ofan")]


def test_a_bar_for_every_inter_switch_link_in_every_direction(outcomes: list[Outcome]) -> None:
    axes = Figure().subplots()
    draw_loads(axes, outcomes[1], "Ofan")
    heights = [bar.get_height() * 1000 for bar in axes.patches if isinstance(bar, Rectangle)]
    inter_switch = [port.bytes for ports in outcomes[1].inter_switch().values() for port in ports]
    assert len(heights) == 64
    assert sum(heights) == pytest.approx(sum(inter_switch))
    assert [text.get_text() for text in axes.texts] == ["E>A", "A>C", "C>A", "A>E"]


@pytest.mark.parametrize(("limit", "bars"), [(15, 0), (16, 64), (17, 64)])
def test_a_layer_of_many_links_is_an_area_of_the_same_heights(
    outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch, limit: int, bars: int
) -> None:
    monkeypatch.setattr(plots, "MOST_BARS", limit)
    axes = Figure().subplots()
    draw_loads(axes, outcomes[0], "Flow")
    assert len(axes.patches) == bars
    assert len(axes.collections) == (0 if bars else 4)
    for area, ports in zip(axes.collections, outcomes[0].inter_switch().values(), strict=False):
        corners = np.array(area.get_paths()[0].vertices)
        assert {round(height * 1000) for height in corners[:, 1]} == {
            0,
            *(port.bytes for port in ports),
        }
        assert np.ptp(corners[:, 0]) == len(ports)


def test_an_experiment_is_drawn_as_four_figures_with_units(outcomes: list[Outcome]) -> None:
    figures = dict(
        experiment_figures(outcomes, [record(outcome, "virtual") for outcome in outcomes])
    )
    assert list(figures) == ["cct", "link_load", "queues", "flow_times"]
    for figure, unit in zip(figures.values(), ("(%)", "(KB)", "(packets)", "(%)"), strict=True):
        assert unit in figure.axes[0].get_ylabel()
    assert figures["queues"].axes[0].get_xlabel() == "time (µs)"
    legend = figures["link_load"].legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["mean of the layer"]
    assert "E>A: uplinks of edges; one seed (1)" in legend.get_title().get_text()


def test_times_of_flows_are_drawn_up_to_the_last(outcomes: list[Outcome]) -> None:
    line = cdf_figure(flow_times(outcomes[:1]), "all").axes[0].lines[0]
    longest = max(flow.fct_ps for flow in outcomes[0].flows) / 1e6
    assert (np.max(line.get_xdata()), np.max(line.get_ydata())) == (pytest.approx(longest), 100)


def test_a_load_balancer_has_one_colour_in_every_picture(outcomes: list[Outcome]) -> None:
    figures = dict(
        experiment_figures(outcomes, [record(outcome, "virtual") for outcome in outcomes])
    )
    ofan = LOOKS["ofan"].colour
    for name in ("cct", "queues", "flow_times"):
        assert ofan in {line.get_color() for line in figures[name].axes[0].lines}, name

    assert style.colour("ofan") == ofan
    bars = figures["link_load"].axes[1].patches
    assert not {to_hex(bar.get_facecolor()) for bar in bars} & {
        look.colour.lower() for look in LOOKS.values()
    }


def test_every_look_is_a_colour_a_marker_and_a_line_that_can_be_drawn() -> None:
    for slug, look in LOOKS.items():
        assert is_color_like(look.colour), slug
        assert look.marker in Line2D.markers, slug
        assert look.line in Line2D.lineStyles, slug


def test_own_programs_have_colours_of_their_own() -> None:
    looks = looks_of(["a.p4", "ofan", "b.p4"])
    assert len({look.colour for look in looks.values()}) == 3
    assert looks["ofan"] == LOOKS["ofan"]


def without_samples(outcome: Outcome, is_reported: bool) -> Outcome:
    ports = outcome.ports if is_reported else silenced(outcome)
    return replace(outcome, ports=ports, samples=QueueSamples((), ()))


def silenced(outcome: Outcome) -> tuple[PortResult, ...]:
    return tuple(replace(port, max_queue_bytes=None) for port in outcome.ports)


def test_queues_that_nobody_looked_at_over_time_are_bars_of_the_longest(
    outcomes: list[Outcome],
) -> None:
    axes = Figure().subplots()
    draw_queues(axes, [without_samples(outcome, True) for outcome in outcomes])
    heights = [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]
    packet = outcomes[0].scenario.data_bytes
    assert max(heights) == pytest.approx(outcomes[0].max_queue_bytes() / packet)
    assert len(heights) == 10


def test_queues_that_are_not_reported_leave_no_blank_axes(outcomes: list[Outcome]) -> None:
    axes = Figure().subplots()
    draw_queues(axes, [without_samples(outcome, False) for outcome in outcomes])
    assert not axes.axison
    assert axes.texts[0].get_text() == "queues: not reported by these switches"


def test_the_demo_marks_the_failure_and_the_change_of_routes(outcomes: list[Outcome]) -> None:
    failed = [run("flow", FAILURES), run("ofan", FAILURES)]
    figure = demo_figure(outcomes, failed)
    texts = {text.get_text() for text in figure.axes[-1].texts}
    assert texts >= {"agg0_0-core0_0 fails", "routes change"}
    assert len(figure.axes) == 2 * len(outcomes) + 2

    before, after = figure.axes[-2:]
    longest = max(outcome.samples.times_ps[-1] for outcome in (*outcomes, *failed)) / 1e6
    assert before.get_xlim() == after.get_xlim()
    assert before.get_xlim()[0] == 0 and before.get_xlim()[1] >= longest


@pytest.mark.parametrize(
    ("fabric", "marks"),
    [
        (Fabric(k=4), []),
        (Fabric(k=4, queue_bytes=100_000), ["buffer: 24"]),
        (Fabric(k=4, queue_bytes=0), []),
        (Fabric(k=4, queue_bytes=100_000, buffer="shared"), []),
    ],
)
def test_a_buffer_is_marked_where_queues_come_near_to_it(
    outcomes: list[Outcome], fabric: Fabric, marks: list[str]
) -> None:
    scenario = outcomes[0].scenario.model_copy(update={"fabric": fabric})
    flow = replace(outcomes[0], demand=replace(outcomes[0].demand, scenario=scenario))
    axes = Figure().subplots()
    draw_queues(axes, [flow])
    assert [text.get_text() for text in axes.texts] == marks
    assert all(text.get_position()[1] < axes.get_ylim()[1] for text in axes.texts)


def test_the_table_has_a_row_per_load_balancer_with_mean_and_deviation(
    outcomes: list[Outcome],
) -> None:
    first = record(outcomes[1], "virtual")
    second = first.model_copy(update={"seed": 2, "cct_ps": first.cct_ps + 2_000_000, "dropped": 7})
    text = StringIO()
    Console(file=text, width=140).print(
        results_table([("", [first, second, record(outcomes[0], "virtual")])])
    )
    rows = [
        line.split()
        for line in text.getvalue().splitlines()
        if line.strip().startswith(("Ofan", "Flow"))
    ]
    assert rows[0][1:4] == [f"{first.cct_ps / 1e6 + 1:.2f}", "±", "1.41"]
    assert rows[0][-2:] == ["7", "0"]
    assert first.fct_p50_ps
    assert rows[0][8] == f"{first.fct_p50_ps / 1e6:.2f}"
    assert len(rows) == 2


def test_queues_that_a_switch_does_not_report_are_not_printed_as_0(
    outcomes: list[Outcome],
) -> None:
    silent = replace(outcomes[1], ports=silenced(outcomes[1]))
    page = StringIO()
    Console(file=page, width=132).print(results_table([("", [record(silent, "mininet")])]))
    assert page.getvalue().count("n. r.") == 5


def test_real_runs_are_told_in_milliseconds(outcomes: list[Outcome]) -> None:
    slow = record(outcomes[1], "mininet").model_copy(update={"cct_ps": 5_300_000_000_000})
    page = StringIO()
    Console(file=page, width=140).print(results_table([("", [slow])]))
    assert "CCT (ms)" in page.getvalue()
    assert "5300.00" in page.getvalue()


def test_a_time_below_the_bound_is_marked_and_explained(outcomes: list[Outcome]) -> None:
    row = record(outcomes[1], "mininet")
    early = row.model_copy(update={"seed": 2, "increase": -0.066})
    for records, marked in (([row], False), ([row, early], True)):
        page = StringIO()
        Console(file=page, width=132).print(results_table([("", records)]))
        assert ("% *" in page.getvalue(), "* below the bound" in page.getvalue()) == (
            marked,
            marked,
        )


def test_counts_that_most_runs_have_none_of_are_columns_where_some_has(
    outcomes: list[Outcome],
) -> None:
    plain = record(outcomes[0], "virtual")
    page = StringIO()
    Console(file=page, width=160).print(results_table([("", [plain])]))
    assert "trimmed" not in page.getvalue()
    assert rare_legend([plain]) == ""

    cut = [plain.model_copy(update={"trimmed": 700}), plain.model_copy(update={"trimmed": 310})]
    Console(file=page, width=160).print(results_table([("", cut)]))
    assert page.getvalue().split()[-1] == "1,010"
    assert "pauses" not in page.getvalue()
    assert rare_legend(cut) == " trimmed: data packets cut to their headers instead of dropped."
