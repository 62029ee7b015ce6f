"""The cost of a run is reported before it begins; a run that does not fit ends in one line."""

import pytest

from fattree.errors import TrafficError
from fattree.experiment.model import Collective, Fabric, Scenario, Transport
from sim import SimulationError, run
from sim.arrays import flows, wiring
from sim.arrays.network import build
from sim.sweeps.cost import HOPS, cost, least_seconds, packet_hops, processes
from sim.sweeps.progress import Lines

SMALL_QUEUE = Fabric(k=4, rate_gbps=10_000, latency_ns=10_000, queue_bytes=9_000)


def incast(fabric: Fabric, message_bytes: int = 4096, recovery: str = "erasure") -> Scenario:
    return Scenario(
        fabric=fabric,
        collective=Collective(matrix="incast", message_bytes=message_bytes),
        transport=Transport.model_validate({"recovery": recovery}),
    )


def test_senders_whose_packets_are_dropped_go_on_for_a_round_trip() -> None:
    scenario = incast(SMALL_QUEUE)
    told = cost([scenario])
    assert told.more_hops == 15 * scenario.bdp_packets * HOPS
    done = run(scenario)
    messages = packet_hops(scenario) // HOPS
    # Without the round trip the estimate would be a thousandth of the packets sent.
    assert messages * 100 < done.transmissions.sum() <= messages + told.more_hops // HOPS


@pytest.mark.parametrize(
    "scenario",
    [
        incast(Fabric(k=4)),
        incast(SMALL_QUEUE.model_copy(update={"queue_bytes": 0})),
        incast(SMALL_QUEUE, recovery="sack"),
        Scenario(fabric=SMALL_QUEUE, collective=Collective(message_bytes=1 << 20)),
    ],
)
def test_others_send_their_messages(scenario: Scenario) -> None:
    assert cost([scenario]).more_hops == 0


def test_packets_under_way_are_bounded_by_round_trips_and_queues() -> None:
    """The pool of a run is no larger."""
    scenario = incast(SMALL_QUEUE)
    network = build(scenario)
    assert network.world.pool.packets.nbytes <= 2 * cost([scenario]).packet_bytes
    huge = incast(Fabric(k=4), message_bytes=1 << 40)
    assert cost([huge]).packet_bytes < 1e9
    unlimited = huge.model_copy(update={"fabric": Fabric(k=4, queue_bytes=0)})
    assert cost([unlimited]).packet_bytes > 1e11


def test_long_and_large_work_is_told_before_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    fabric = Fabric(k=8, rate_gbps=10_000, latency_ns=100_000, queue_bytes=9_000)
    Lines("x").expect(cost([incast(fabric)]))
    assert capsys.readouterr().err == (
        "x: senders whose packets are dropped go on for a round trip: up to"
        " 5.5e+08 more packet-hops, 14 s\n"
        "x: packets under way take up to 5.8 GB of memory\n"
    )


def test_a_run_that_needs_more_memory_than_is_free_ends_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wiring, "spare_bytes", lambda: 1 << 20)
    with pytest.raises(SimulationError, match=r"more than [0-9,]+ packets are under way, .* free"):
        run(incast(SMALL_QUEUE, message_bytes=1 << 16))


def test_a_log_of_packets_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "spare_bytes", lambda: 10**9)
    with pytest.raises(TrafficError, match=r"note each of 4,026,531,840 packets, .* 20\.1 GB"):
        build(incast(Fabric(k=4), message_bytes=1 << 40, recovery="sack"))


@pytest.mark.parametrize(("more_seconds", "expected"), [(1e-6, 1), (0, 4), (-1e-6, 4)])
def test_short_runs_take_one_process_and_long_ones_all_processors(
    more_seconds: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = [Scenario(fabric=Fabric(k=4), seed=seed) for seed in (1, 2)]
    monkeypatch.setattr("sim.sweeps.cost.processors", lambda: 4)
    seconds = least_seconds(cost(work).hops)
    monkeypatch.setattr("sim.sweeps.cost.QUICK_SECONDS", seconds + more_seconds)
    assert processes(work) == expected
