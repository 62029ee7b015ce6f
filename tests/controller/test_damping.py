"""Flap damping in virtual time: the links left out, until when, and the updates not sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p4src
from controller.fabric_controller import FabricController, LinkChange
from controller.pipeline import Pipeline
from fattree.experiment.model import Controller, Fabric, Scenario
from fattree.routes.damping import CEILING, Damping, damping

MS = 10**9
NONE = frozenset[int]()
ONE = frozenset({5})


def flap(damped: Damping, times: int, period_ps: int, start_ps: int = 0) -> int:
    """Let link 5 fail and come back so often; return the time of the last recovery."""
    for n in range(times):
        damped.on_change(start_ps + n * period_ps, ONE, NONE)
        damped.on_change(start_ps + n * period_ps + period_ps // 2, NONE, ONE)
    return start_ps + (times - 1) * period_ps + period_ps // 2


def test_a_single_failure_is_not_damped() -> None:
    damped = Damping(1_000 * MS, 3, 1)
    assert damped.on_change(0, ONE, NONE) == ONE
    assert damped.on_change(1, NONE, ONE) == NONE


def test_a_link_that_flaps_is_left_out_although_it_is_up() -> None:
    damped = Damping(1_000 * MS, 3, 1)
    last_ps = flap(damped, 4, 100 * MS)
    assert damped.release(last_ps) == ONE


def test_it_is_used_again_when_its_penalty_has_decayed() -> None:
    damped = Damping(1_000 * MS, 3, 1)
    flap(damped, 4, 100 * MS)
    release_ps = damped.next_release_ps
    assert release_ps is not None and 300 * MS + 1_500 * MS < release_ps < 300 * MS + 2_000 * MS, (
        "log2 of a penalty below 4"
    )
    assert damped.release(release_ps - 1) == ONE
    assert damped.release(release_ps) == NONE
    assert damped.next_release_ps is None


def test_a_link_that_is_down_when_it_is_released_stays_out() -> None:
    damped = Damping(1_000 * MS, 3, 1)
    flap(damped, 4, 100 * MS)
    damped.on_change(400 * MS, ONE, NONE)
    assert damped.release(10**15) == ONE


def test_others_are_not_punished() -> None:
    damped = Damping(1_000 * MS, 3, 1)
    last_ps = flap(damped, 10, 10 * MS)
    assert damped.on_change(last_ps, frozenset({7}), NONE) == {5, 7}
    assert damped.on_change(last_ps + 1, NONE, frozenset({7})) == {5}


@given(times=st.integers(1, 200), period_ps=st.integers(2, 10**12))
def test_the_wait_after_the_last_flap_is_bounded(times: int, period_ps: int) -> None:
    half_life_ps = 1_000 * MS
    damped = Damping(half_life_ps, 3, 1)
    last_ps = flap(damped, times, period_ps)
    assert damped.release(last_ps + 4 * half_life_ps) == NONE, (
        f"log2({CEILING} * 3 / 1) = 3.6 half-lives"
    )


def test_the_same_failure_told_twice_counts_once() -> None:
    damped = Damping(1_000 * MS, 3, 1)
    for time_ps in range(10):
        damped.on_change(time_ps, ONE, NONE)
    assert damped.suppressed == NONE


def test_without_a_half_life_there_is_no_damping() -> None:
    assert damping(Controller()) is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"damping_suppress": 3}, "need damping_half_life_us"),
        (
            {"damping_half_life_us": 5, "damping_reuse": 4},
            "damping_reuse = 4 must be below damping_suppress = 3",
        ),
        ({"probe_misses": 3}, 'need detection = "probe"'),
        (
            {"detection": "netlink", "probe_interval_us": 3},
            'need detection = "probe", not "netlink"',
        ),
        ({"detection": "bfd"}, "announced"),
    ],
)
def test_settings_without_effect_are_refused_by_name(
    settings: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Controller.model_validate(settings)


def test_the_controller_plans_for_a_flapping_link_once() -> None:
    experiment = Scenario(fabric=Fabric(k=4), controller=Controller(damping_half_life_us=10**6))
    brain = FabricController(experiment, Pipeline.read(p4src.p4info_path("ofan")))
    brain.start()
    planned = []
    for n in range(20):
        planned.append(bool(brain.on_event(n * 100 * MS, LinkChange(down=ONE))))
        planned.append(bool(brain.on_event(n * 100 * MS + 50 * MS, LinkChange(up=ONE))))
    assert sum(planned) == 7, "three flaps and the fourth failure; then the link is out"
    assert brain.failed == ONE
    release_ps = brain.next_release_ps
    assert release_ps is not None and brain.release(release_ps) and brain.failed == NONE


@pytest.mark.parametrize(("suppress", "reuse"), [(3, 1), (2.5, 0.8), (6, 3)])
def test_no_quiet_link_is_left_out_longer_than_foreseen(suppress: float, reuse: float) -> None:
    """Flaps without end raise the penalty to its ceiling, and halving brings it down to reuse."""
    damped = Damping(MS, suppress, reuse)
    last_ps = flap(damped, 50, 2)
    release_ps = damped.next_release_ps
    assert release_ps is not None
    assert 0 <= damped.longest_ps - (release_ps - last_ps) <= MS // 1000
