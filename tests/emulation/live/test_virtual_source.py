"""A paced virtual run: in step with the clock, the same run as without, and open to clicks."""

from collections.abc import Callable
from typing import Any

import pytest

from emulation.errors import EmulationError
from emulation.live.model import Snapshot
from emulation.live.source import LiveError
from emulation.live.virtual_source import Pace, VirtualSource, default_speed
from emulation.programs.own_program import own_program
from emulation.virtual.fabric import VirtualFabric
from fattree.errors import AddressError
from fattree.experiment.model import (
    Collective,
    Degraded,
    Fabric,
    FailureEvent,
    Failures,
    OwnProgram,
    Scenario,
    Transport,
)
from fattree.texts.shipped import EXPERIMENTS
from tests.parity.drawing import pairs

CORE_LINK = "agg0_0-core0_0"
IDLE_LINK = "agg2_0-core0_0"
US = 10**6
LONG = Collective(message_bytes=1 << 20)
# Routes follow changes a round trip later.
SLOWLY = Failures(convergence_rtt=1)


def scenario(policy: str = "ofan", **settings: Any) -> Scenario:
    small = {"fabric": Fabric(k=4), "collective": Collective(message_bytes=16 * 4096)}
    return Scenario(policy=policy, **{**small, **settings})


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_virtual_time_follows_the_clock_at_the_asked_speed(hand: Hand) -> None:
    source = VirtualSource(scenario(), speed=1e-6, clock=hand)
    hand.now_s = 2.0
    assert source.poll().time_ps == 2 * US
    source.set_pace(0.5, paused=False)
    hand.now_s = 3.0
    assert source.poll().time_ps == 2.5 * US


def test_a_pause_stops_time_and_going_on_does_not_jump(hand: Hand) -> None:
    source = VirtualSource(scenario(), speed=1e-6, clock=hand)
    hand.now_s = 1.0
    source.poll()
    source.set_pace(1, paused=True)
    hand.now_s = 100.0
    assert (source.poll().time_ps, source.poll().header.paused) == (US, True)
    source.set_pace(1, paused=False)
    hand.now_s = 101.0
    assert source.poll().time_ps == 2 * US


def test_a_pause_is_a_state_until_the_run_is_begun_again(hand: Hand) -> None:
    source = VirtualSource(scenario(), speed=1e-6, clock=hand)
    source.set_pace(2, paused=True)
    assert source.poll().header.state == "paused"
    source.start("jsq")
    hand.now_s += 1.0
    snapshot = source.poll()
    assert (snapshot.header.state, snapshot.time_ps) == ("running", 2 * US)
    assert (snapshot.header.paused, snapshot.header.factor) == (False, 2)


def test_a_pace_tells_which_part_of_its_speed_is_reached(hand: Hand) -> None:
    pace, now_ps = Pace(1e-6, hand), 0
    for _ in range(100):
        hand.now_s += 0.1
        now_ps = (now_ps + pace.target_ps()) // 2
        pace.set_now(now_ps)
        pace.heed(now_ps)
    assert pace.reached == pytest.approx(0.5e-6, rel=0.01)
    for _ in range(100):
        hand.now_s += 0.1
        pace.heed(pace.target_ps())
    assert pace.reached is None
    # One late poll, as after a while without viewers, is no news.
    hand.now_s += 1000
    pace.target_ps()
    pace.heed(now_ps + 10 * US)
    assert pace.reached is None


def test_a_source_that_keeps_up_says_nothing_and_one_that_does_not_says_how_fast() -> None:
    ticks = iter(range(10**6))
    longer = Collective(message_bytes=8 << 20)
    slow = VirtualSource(scenario(collective=longer), speed=1.0, clock=lambda: next(ticks))
    header = slow.poll().header
    while header.state == "running":
        reached = header.reached
        header = slow.poll().header
    assert reached and reached < 0.5
    hand = Hand()
    quick = VirtualSource(scenario(), speed=1e-7, clock=hand)
    for _ in range(20):
        hand.now_s += 0.1
        assert quick.poll().header.reached is None


def test_a_program_of_the_users_has_its_own_name_among_those_to_start(hand: Hand) -> None:
    user_program = own_program(
        OwnProgram(file=str(EXPERIMENTS / "two_choices.p4")), scenario().tree
    )
    mine = scenario("simple_rr", program=user_program.path.name)
    source = VirtualSource(mine, 1e-6, user_program, clock=hand)
    assert list(source.policies.items())[:2] == [("two_choices.p4",) * 2, ("flow", "Flow")]
    digests = []
    for name in ("two_choices.p4", "simple_rr", "two_choices.p4"):
        source.start(name)
        for _ in source.replay():
            pass
        header = source.snapshot().header
        assert (header.policy, header.label) == (name, source.policies[name])
        digests.append(source.snapshot().tiers)
    assert digests[0] == digests[2] != digests[1]


def test_a_source_that_cannot_keep_up_lets_go_of_the_clock() -> None:
    ticks = iter(range(10**6))
    source = VirtualSource(scenario(collective=LONG), speed=1.0, clock=lambda: next(ticks))
    first, second = source.poll(), source.poll()
    assert 0 < first.time_ps < second.time_ps < 10**12


@pytest.mark.parametrize("policy", ["ofan", "flow", "host_dr"])
def test_a_paced_run_is_the_run_itself(policy: str, hand: Hand) -> None:
    source, plain = (
        VirtualSource(scenario(policy), speed=1e-6, clock=hand),
        VirtualFabric(scenario(policy)).run(),
    )
    while (snapshot := source.poll()).header.state == "running":
        hand.now_s += 0.3
    assert snapshot.cct_ps == plain.cct_ps
    assert [tier.longest_queue for tier in snapshot.tiers] == pytest.approx(
        [plain.max_queue_bytes(tier.layer) / plain.scenario.data_bytes for tier in snapshot.tiers],
        abs=1e-4,
    )


def shown(
    chosen: Scenario, hand: Hand, *clicks: tuple[float, Callable[[VirtualSource], None]]
) -> Snapshot:
    """Return the last snapshot of a run with clicks at seconds, which are microseconds of it."""
    hand.now_s = 0.0
    source = VirtualSource(chosen, speed=1e-6, clock=hand)
    for second, click in clicks:
        hand.now_s = second
        assert source.poll().time_ps == round(second * US)
        click(source)

    while (snapshot := source.poll()).header.state == "running":
        hand.now_s += 0.3

    return snapshot


def assert_same_end(clicked: Snapshot, filed: Snapshot) -> None:
    for field in ("cct_ps", "links", "tiers", "phases", "lost_to_failure", "dropped"):
        ours, theirs = getattr(clicked, field), getattr(filed, field)
        if field == "links":
            # Loads are those of a while before, in which they may have been read more often.
            ours, theirs = (
                [(link.name, link.is_up, link.lost_to_failure, link.rate) for link in links]
                for links in (ours, theirs)
            )
        elif field == "tiers":
            ours, theirs = (
                [(tier.layer, tier.longest_queue, tier.dropped) for tier in tiers]
                for tiers in (ours, theirs)
            )

        assert ours == theirs, field


@pytest.mark.parametrize("policy", ["ofan", "host_dr"])
def test_a_click_is_the_failure_of_a_file(policy: str, hand: Hand) -> None:
    event = FailureEvent(link=CORE_LINK, down_ns=1500, up_ns=3000)
    quick = Failures(convergence_rtt=0.1)
    filed = shown(scenario(policy, failures=quick.model_copy(update={"events": (event,)})), hand)
    clicked = shown(
        scenario(policy, failures=quick),
        hand,
        (1.5, lambda source: source.set_link(CORE_LINK, up=False)),
        (3.0, lambda source: source.set_link(CORE_LINK, up=True)),
    )
    assert filed.lost_to_failure > 0
    assert_same_end(clicked, filed)


TRIMMING: dict[str, Any] = {
    "fabric": Fabric(k=4, queue_bytes=10_000),
    "transport": Transport(recovery="sack", trimming=True),
}
PAUSING: dict[str, Any] = {"fabric": Fabric(k=4, queue_bytes=300_000, flow_control="pfc")}
SETTINGS: dict[str, dict[str, Any]] = {"plain": {}, "trimming": TRIMMING, "pausing": PAUSING}


@pytest.mark.parametrize(("policy", "name"), pairs(["ofan", "jsq", "host_dr"], [*SETTINGS]))
def test_a_rate_by_hand_is_the_rate_of_a_file(policy: str, name: str, hand: Hand) -> None:
    settings = SETTINGS[name]
    slow = Degraded(link=CORE_LINK, rate=0.1, at_ns=1500, until_ns=4000)
    quick = Failures(convergence_rtt=0.1)
    filed = shown(
        scenario(policy, failures=quick.model_copy(update={"degraded": (slow,)}), **settings), hand
    )
    clicked = shown(
        scenario(policy, failures=quick, **settings),
        hand,
        (1.5, lambda source: source.set_rate(CORE_LINK, 0.1)),
        (4.0, lambda source: source.set_rate(CORE_LINK, 1)),
    )
    assert_same_end(clicked, filed)
    assert filed.cct_ps != shown(scenario(policy, **settings), hand).cct_ps


def test_a_click_fails_the_link_and_traffic_moves_to_the_others(hand: Hand) -> None:
    source = VirtualSource(
        scenario(collective=Collective(message_bytes=1 << 20)), speed=1e-6, clock=hand
    )

    def looked(seconds: float) -> dict[str, float]:
        for _ in range(10):
            hand.now_s += seconds / 10
            snapshot = source.poll()
        return {link.name: link.load_up for link in snapshot.links}

    before = looked(4)
    source.set_link(IDLE_LINK, up=False)
    after = looked(3)
    assert source.poll().failed == (IDLE_LINK,)
    neighbours = ("agg2_0-core0_1", "agg2_1-core1_0", "agg2_1-core1_1")
    assert (
        sum(after[neighbour] for neighbour in neighbours)
        > 1.15 * sum(before[neighbour] for neighbour in neighbours)
        > 0
    )
    assert before[IDLE_LINK] > 0.2 > after[IDLE_LINK]
    source.set_link(IDLE_LINK, up=True)
    assert looked(3)[IDLE_LINK] > 0.2


def test_a_link_that_was_slowed_by_hand_is_slow_in_the_next_run_and_spared(hand: Hand) -> None:
    source = VirtualSource(scenario(failures=SLOWLY), speed=1e-6, clock=hand)
    source.set_rate(IDLE_LINK, 0.25)
    with pytest.raises(LiveError, match="at 25 % of its rate already"):
        source.set_rate(IDLE_LINK, 0.25)
    assert source.snapshot().slow == (f"{IDLE_LINK} at 25 % of its rate",)
    source.start("ofan")
    snapshot = source.snapshot()
    assert snapshot.slow == (f"{IDLE_LINK} at 25 % of its rate",)
    assert snapshot.changes[0].rate == 0.25
    source.set_rate(IDLE_LINK, 1)
    source.start("ofan")
    assert source.snapshot().slow == ()


def test_a_click_that_the_experiment_cannot_have_changes_nothing(hand: Hand) -> None:
    source = VirtualSource(scenario(**PAUSING), speed=1e-6, clock=hand)
    hand.now_s = 1.0
    before = source.poll()
    with pytest.raises(LiveError, match="take a greater rate"):
        source.set_rate(IDLE_LINK, 0.001)
    assert source.snapshot() == before
    source.set_rate(IDLE_LINK, 0.5)
    assert source.snapshot().slow == (f"{IDLE_LINK} at 50 % of its rate",)


def test_hosts_links_are_not_changed_by_hand(hand: Hand) -> None:
    source = VirtualSource(scenario(), speed=1e-6, clock=hand)
    with pytest.raises(AddressError, match="h0_0_0 is a host's link, which no command changes"):
        source.set_rate("h0_0_0", 0.25)
    with pytest.raises(AddressError, match="h0_0_0 is a host's link, which no command changes"):
        source.set_link("h0_0_0", False)

    assert source.snapshot().slow == ()


def test_the_timeline_waits_for_the_controller(hand: Hand) -> None:
    source = VirtualSource(scenario(failures=Failures(convergence_rtt=1)), speed=1e-6, clock=hand)
    hand.now_s = 2.0
    source.poll()
    source.set_link(CORE_LINK, up=False)
    (change,) = source.poll().changes
    assert (change.links, change.at_ps, change.installed_ps) == ((CORE_LINK,), 2 * US, None)
    hand.now_s = 9.0
    (change,) = source.poll().changes
    assert change.installed_ps == 2 * US + source.scenario.zero_load_rtt_ps
    assert change.updates > 0 < change.switches


def test_clicks_after_the_end_are_obeyed_and_time_rests_when_all_is_shown(hand: Hand) -> None:
    source = VirtualSource(scenario(failures=Failures(convergence_rtt=1)), speed=1e-6, clock=hand)
    hand.now_s = 60.0
    while source.poll().header.state == "running":
        hand.now_s += 5.0
    source.set_link(CORE_LINK, up=False)
    for _ in range(5):
        hand.now_s += 2.0
        last = source.poll()
    assert last.changes[0].installed_ps is not None
    hand.now_s += 50.0
    assert source.poll().time_ps - last.time_ps <= 2 * US
    hand.now_s += 50.0
    assert source.poll().time_ps == source.poll().time_ps


def test_time_rests_when_queues_are_empty(hand: Hand) -> None:
    # Copies of packets that were taken for lost wait for 5 us when the last flow is complete.
    event = FailureEvent(link=CORE_LINK, down_ns=5000)
    failing = scenario(
        policy="flow",
        collective=Collective(message_bytes=1 << 20),
        failures=Failures(events=(event,), convergence_rtt=1),
    )
    source = VirtualSource(failing, speed=1e-6, clock=hand)
    queues = []
    for _ in range(400):
        hand.now_s += 0.5
        last = source.poll()
        if last.header.state == "complete":
            queues.append(max(tier.queue for tier in last.tiers))

    assert queues[0] > 100
    assert queues[-1] == 0
    assert source.poll().time_ps == last.time_ps


def test_a_run_begins_again_with_another_load_balancer_and_the_clicked_links_down(
    hand: Hand,
) -> None:
    source = VirtualSource(scenario(failures=SLOWLY), speed=1e-6, clock=hand)
    hand.now_s = 2.0
    source.poll()
    source.set_link(CORE_LINK, up=False)
    source.start("host_pkt")
    hand.now_s = 4.0
    snapshot = source.poll()
    assert (snapshot.header.policy, snapshot.time_ps, snapshot.failed) == (
        "host_pkt",
        2 * US,
        (CORE_LINK,),
    )
    assert snapshot.lost_to_failure == 0
    assert snapshot.changes[0].installed_ps == 0


def test_events_of_the_file_and_clicks_share_a_link_and_the_last_word_counts(hand: Hand) -> None:
    event = FailureEvent(link=CORE_LINK, down_ns=1000, up_ns=4000)
    source = VirtualSource(scenario(failures=Failures(events=(event,))), speed=1e-6, clock=hand)
    states = []
    for second in (2.0, 3.0, 5.0):
        hand.now_s = second
        states.append(source.poll().failed)
        if second == 2.0:
            source.set_link(CORE_LINK, up=True)
        if second == 3.0:
            source.set_link(CORE_LINK, up=False)
    assert states == [(CORE_LINK,), (), ()]


@pytest.mark.parametrize(
    ("command", "error", "message"),
    [
        (
            lambda source: source.set_link("agg0_0-core9_9", up=False),
            AddressError,
            "there is no switch core9_9",
        ),
        (
            lambda source: source.set_link(CORE_LINK, up=True),
            LiveError,
            "agg0_0-core0_0 is up already",
        ),
        (lambda source: source.start("magic"), LiveError, "no load balancer 'magic'"),
        (lambda source: source.set_pace(1000, paused=False), LiveError, "the speed can be"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    command: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        command(VirtualSource(scenario()))


def test_a_replay_without_an_end_is_given_up() -> None:
    dead = (FailureEvent(link="edge0_0-agg0_0", down_ns=0),)
    failures, few = (
        Failures(events=dead, convergence_rtt=float("inf")),
        Collective(message_bytes=4096),
    )
    source = VirtualSource(
        scenario("flow", failures=failures, collective=few), default_speed(scenario(), 1)
    )
    with pytest.raises(EmulationError, match="flows are not complete"):
        for _ in source.replay():
            pass


def test_the_usual_speed_makes_a_run_last_as_long_as_asked() -> None:
    chosen = scenario()
    last = list(VirtualSource(chosen, default_speed(chosen, 10)).replay())[-1]
    assert 10 <= last.time_ps / 10**12 / default_speed(chosen, 10) < 11
