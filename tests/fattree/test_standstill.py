"""The end of a run that stands still: the time that it is watched, and progress."""

from typing import Any

import numpy as np
import pytest

from fattree.demand import traffic
from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    Loss,
    Scenario,
    Transport,
)
from fattree.routes.failures import timeline
from fattree.routes.standstill import (
    LEAST_TRIES,
    NEVER,
    Patience,
    Senders,
    Standing,
    Watch,
    patience,
    standing,
    why_still,
)
from fattree.units import PS_PER_NS, PS_PER_US

GIVEN = Patience(settled_ps=0, wait_ps=100, queues_ps=0, tries=8)


def scenario(policy: str = "flow", **settings: Any) -> Scenario:
    return Scenario(
        policy=policy, **{"fabric": Fabric(k=4), "collective": Collective(), **settings}
    )


def given(patient: Scenario) -> Patience:
    return patience(patient, timeline(patient, traffic.flows(patient)))


def seen(reached: int, *sent: int, is_changing: bool = False) -> Standing:
    return Standing(reached, np.array(sent), np.ones(len(sent), dtype=bool), is_changing, 7)


def looked(watch: Watch, *standings: Standing) -> list[bool]:
    """Return a watch's decision at each of its looks."""
    return [watch.is_over(watch.next_ps, standing_now) for standing_now in standings]


def test_a_run_without_progress_is_over_when_all_flows_have_sent_enough() -> None:
    # Eight more of each by the look before the last, in three rounds.
    sent = [(5, 5), (9, 9), (13, 12), (14, 13), (15, 14)]
    standings = looked(Watch.of(GIVEN), *(seen(1, *standing_now) for standing_now in sent))
    assert standings == [False, False, False, False, True]


def test_a_burst_is_no_eight_tries() -> None:
    watch = Watch.of(GIVEN)
    assert looked(watch, *(seen(1, 5 + 50 * more) for more in (0, 1, 1, 1, 2))) == [False] * 5
    assert looked(watch, seen(1, 155)) == [True]


def test_any_progress_begins_the_count_anew() -> None:
    watch = Watch.of(GIVEN)
    assert (
        looked(watch, seen(1, 5), seen(2, 50), seen(2, 59), seen(2, 60), seen(3, 90)) == [False] * 5
    )
    assert looked(watch, *(seen(3, 90 + 9 * more) for more in (1, 2, 3))) == [False, False, True]


def test_what_is_about_to_change_is_waited_for() -> None:
    watch = Watch.of(GIVEN)
    assert looked(watch, seen(1, 5), *(seen(1, 99, is_changing=True),) * 3) == [False] * 4
    # The change itself is between two looks.
    assert looked(watch, *(seen(1, 150 + 9 * more) for more in range(3))) == [False] * 3
    assert looked(watch, seen(1, 200)) == [True]


def test_looks_are_the_rarer_the_longer_nothing_is_sent() -> None:
    watch = Watch.of(GIVEN)
    times = []
    for _ in range(6):
        times.append(watch.next_ps)
        watch.is_over(watch.next_ps, seen(1, 5))
    assert times == [100, 200, 300, 500, 900, 1700]


def test_nothing_is_judged_before_the_last_change() -> None:
    event = FailureEvent(link="edge0_0-agg0_0", down_ns=500_000, up_ns=900_000)
    standings = given(scenario(failures=Failures(events=(event,), convergence_rtt=float("inf"))))
    assert standings.settled_ps == 900_000 * PS_PER_NS
    assert Watch.of(standings).next_ps == standings.settled_ps


@pytest.mark.parametrize(
    ("settings", "tries"),
    [
        ({}, LEAST_TRIES),
        ({"policy": "themis"}, LEAST_TRIES),
        # 21 tries leave a chance of 10**-9 where each succeeds with 1 - 1/e: 21 for each path.
        ({"policy": "ofan"}, 83),
        ({"policy": "host_pkt"}, 83),
        # Both ways over the lossy link: a quarter passes.
        ({"failures": Failures(losses=(Loss(host="h0_0_0", share=0.5),))}, 83),
        ({"failures": Failures(losses=(Loss(host="h0_0_0", share=1),))}, LEAST_TRIES),
    ],
)
def test_who_has_a_chance_on_each_try_may_try_often(settings: dict[str, Any], tries: int) -> None:
    assert given(scenario(**settings)).tries == tries


def test_full_queues_may_hold_everything_up() -> None:
    # 1,000 ACKs with their gaps, on six links in each direction, three times.
    small = Fabric(k=4, queue_bytes=64_000)
    full = given(scenario(fabric=small))
    assert full.queues_ps == 3 * 12 * 1000 * scenario().ack_slot_ps
    assert full.wait_ps == given(scenario()).wait_ps

    lanes = scenario(fabric=small, transport=Transport(trimming=True))
    assert given(lanes).queues_ps == 2 * full.queues_ps
    assert given(scenario(fabric=Fabric(k=4, queue_bytes=0))).queues_ps >= NEVER


def test_queues_are_no_longer_than_what_was_sent() -> None:
    # Seen to stand still at 100, since 7: the packets sent until then have left four times later.
    watch = Watch.of(GIVEN._replace(queues_ps=NEVER))
    assert looked(watch, seen(1, 0)) == [False]
    assert watch.next_ps == 100 + 100 + 4 * 7


def test_progress_is_what_senders_learn_starts_and_ends() -> None:
    senders = Senders(
        started_ps=np.array([10, 20, 900, NEVER]),
        done_ps=np.array([50, NEVER, NEVER, 0]),
        heard_ps=np.array([50, 70, 0, 0]),
        acked=np.array([4, 2, 0, 0]),
        tries=np.array([4, 9, 0, 0]),
        computes=np.array([False, False, False, True]),
    )
    standings = standing(100, senders)
    assert (standings.reached, standings.heard_ps, standings.is_changing) == (6 + 3 + 1, 70, False)
    assert standings.is_open.tolist() == [False, True, True, False]
    computing = senders._replace(computes=np.array([False, True, False, False]))
    assert standing(100, computing).is_changing


def test_the_reason_names_links_that_routes_do_not_avoid() -> None:
    events = tuple(
        FailureEvent(link=link, down_ns=0, up_ns=up_ns)
        for link, up_ns in (("edge0_0-agg0_0", None), ("edge0_1-agg0_0", 100))
    )
    never = scenario(failures=Failures(events=events, convergence_rtt=float("inf")))
    told = why_still(never, timeline(never, traffic.flows(never)), 3 * PS_PER_US)
    assert told == (
        "no progress since 3.000 µs, and nothing can change that any more:"
        " edge0_0-agg0_0 is down for good, and routes still lead there"
    )
    soon = never.model_copy(update={"failures": Failures(events=events)})
    assert ":" not in why_still(soon, timeline(soon, traffic.flows(soon)), 0)
