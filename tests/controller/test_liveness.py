"""Liveness by probes, without I/O: when failures are noticed, and when the controller rather
suspects itself.
"""

import pytest

import p4src
from controller.errors import PlanError
from controller.fabric_controller import FabricController, LinkChange
from controller.liveness import (
    Liveness,
    Probe,
    liveness,
    probes_per_second,
)
from controller.pipeline import Pipeline
from fattree.errors import ExperimentError
from fattree.experiment.model import Controller, Fabric, Scenario
from fattree.routes.link_liveness import DEFAULT_MISSES, PATIENCE
from fattree.shape.topology import FatTree, LinkEnd

TREE = FatTree(4)
MS = 10**9
NOTHING = LinkChange()
LINK = 16


def beat(
    probing: Liveness, dead: frozenset[int] = frozenset(), now_ps: int | None = None
) -> LinkChange:
    """Tick when it is due (or later) and let all probes arrive but those over dead links.

    Return the change of links that was noticed.
    """
    probes, change = probing.tick(probing.next_tick_ps if now_ps is None else now_ps)
    for probe in probes:
        end = TREE.neighbour(probe.switch, probe.port)
        assert end is not None
        if not any(
            {LinkEnd(probe.switch, probe.port), end} == set(TREE.link_ends(link)) for link in dead
        ):
            assert probing.on_probe(*end, probe.frame)
    return change


def test_every_link_is_probed_in_both_directions() -> None:
    probes, _ = Liveness(TREE, MS, 3).tick(0)
    assert len(probes) == len({(probe.switch, probe.port) for probe in probes}) == 2 * TREE.links


def test_the_fabric_sends_two_probes_for_each_link_and_interval() -> None:
    scenario = Scenario(fabric=Fabric(k=4))
    rate = probes_per_second(scenario, Liveness(TREE, 7 * MS, 3))
    assert rate == pytest.approx(2 * TREE.links / 0.007)


@pytest.mark.parametrize("misses", [1, 2, 5])
def test_a_link_is_dead_after_as_many_intervals_as_may_miss(misses: int) -> None:
    probing = Liveness(TREE, MS, misses)
    beat(probing)
    changes = [beat(probing, frozenset({LINK})) for _ in range(misses + 1)]
    assert changes == [NOTHING] * misses + [LinkChange(down=frozenset({LINK}))]


def test_a_link_is_alive_again_when_it_was_heard_as_often() -> None:
    probing = Liveness(TREE, MS, 3)
    for _ in range(6):
        beat(probing, frozenset({LINK}))
    assert [beat(probing) for _ in range(5)] == [NOTHING] * 3 + [
        LinkChange(up=frozenset({LINK})),
        NOTHING,
    ]


def test_one_direction_is_enough_to_be_dead() -> None:
    probing = Liveness(TREE, MS, 2)
    deaf = TREE.link_ends(LINK)[0]
    change = NOTHING
    for _ in range(4):
        probes, noticed = probing.tick(probing.next_tick_ps)
        change = noticed if noticed != NOTHING else change
        for probe in probes:
            end = TREE.neighbour(probe.switch, probe.port)
            if end is not None and end != deaf:
                probing.on_probe(*end, probe.frame)
    assert change == LinkChange(down=frozenset({LINK}))


def test_a_tick_that_comes_late_blames_nobody() -> None:
    probing = Liveness(TREE, MS, 2)
    probing.tick(0)
    assert probing.tick(50 * MS)[1] == NOTHING
    assert probing.next_tick_ps == 51 * MS


@pytest.mark.parametrize(("behind_ps", "is_late"), [(MS - 1, False), (MS, True)])
def test_a_tick_is_late_when_the_next_one_is_due(behind_ps: int, is_late: bool) -> None:
    probing = Liveness(TREE, MS, 2)
    probing.tick(0)
    probing.tick(MS + behind_ps)
    assert probing.next_tick_ps == (MS + behind_ps if is_late else MS) + MS


def test_when_most_links_fall_silent_it_waits_longer_but_not_for_ever() -> None:
    probing = Liveness(TREE, MS, 2)
    beat(probing)
    everything = frozenset(range(TREE.links))
    changes = [beat(probing, everything) for _ in range(2 * PATIENCE + 1)]
    assert changes == [NOTHING] * (2 * PATIENCE) + [LinkChange(down=everything)]


@pytest.mark.parametrize(
    ("down", "silent", "is_patient"),
    [(0, 16, False), (0, 17, True), (2, 15, False), (2, 16, True)],
)
def test_half_of_the_living_links_may_die_at_once(down: int, silent: int, is_patient: bool) -> None:
    probing = Liveness(TREE, MS, 2, down=range(down))
    beat(probing, frozenset(range(down)))
    dying = frozenset(range(down, down + silent))
    changes = [beat(probing, frozenset(range(down + silent))) for _ in range(2 * PATIENCE + 1)]
    last = 2 * PATIENCE if is_patient else 2
    assert changes[: last + 1] == [NOTHING] * last + [LinkChange(down=dying)]


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0" * 60,
        b"\0" * 12 + b"\x88\xb5" + b"OFAN",
        b"\0" * 12 + b"\x88\xb5" + b"OFAN" + b"\0" * 5,
        b"\0" * 12 + b"\x88\xb5" + b"nafO" + b"\0" * 40,
    ],
)
def test_what_is_no_probe_is_ignored(frame: bytes) -> None:
    assert not Liveness(TREE, MS, 2).on_probe(0, 3, frame)


def test_a_probe_needs_no_padding() -> None:
    probing = Liveness(TREE, MS, 2)
    probe = probing.tick(0)[0][0]
    end = TREE.neighbour(probe.switch, probe.port)
    assert end is not None and probing.on_probe(*end, probe.frame.rstrip(b"\0").ljust(24, b"\0"))


def test_a_probe_at_the_wrong_port_is_ignored() -> None:
    probing = Liveness(TREE, MS, 2)
    probe: Probe = probing.tick(0)[0][0]
    assert not probing.on_probe(probe.switch, probe.port, probe.frame)


def test_by_default_probes_go_out_every_zero_load_rtt() -> None:
    experiment = Scenario(fabric=Fabric(k=4), controller=Controller(detection="probe"))
    probing = liveness(experiment)
    assert probing is not None and (probing.interval_ps, probing.misses) == (
        experiment.zero_load_rtt_ps,
        DEFAULT_MISSES,
    )
    assert liveness(Scenario()) is None


def test_an_interval_that_no_probe_could_keep_is_refused() -> None:
    hasty = Controller(detection="probe", probe_interval_us=0.1, probe_misses=2)
    with pytest.raises(
        ExperimentError,
        match=r"probe_interval_us x probe_misses = 0\.2 µs: a probe is on its way for 0\.5",
    ):
        liveness(Scenario(controller=hasty))


def test_a_probe_must_be_heard_before_its_silence_counts() -> None:
    # Half a microsecond of latency, and 60 bytes at 800 Gb/s.
    even, enough = (
        Scenario(controller=Controller(detection="probe", probe_interval_us=us, probe_misses=2))
        for us in (0.2503, 0.250301)
    )
    with pytest.raises(ExperimentError, match="every link would seem dead"):
        liveness(even)
    assert liveness(enough)


def test_a_program_that_cannot_catch_probes_is_refused() -> None:
    pipeline = Pipeline.read(p4src.p4info_path("ofan"))
    del pipeline.tables["punt"]
    with pytest.raises(PlanError, match="no table punt"):
        FabricController(Scenario(controller=Controller(detection="probe")), pipeline)
