"""The public simulator of Ultra Ethernet: its constants, and its handling of losses."""

from typing import Any

import pytest

from fattree.experiment.model import Collective, Fabric, Scenario, Transport
from fattree.units import PS_PER_NS, PS_PER_US
from hostagent.rules import rules
from hostagent.transports import congestion, labels, nscc, sack, state
from sim import run
from tests.hostagent.conftest import Sender
from tests.outside.tables import table

NSCC = table("uet_htsim.toml", "nscc")
LATE_HOLES = table("uet_htsim.toml", "late")
LOSS = table("uet_htsim.toml", "loss")
ONE = nscc.ONE
LATE = 1_000_000 * PS_PER_US


def flow(threshold: int | None = 3, **options: Any) -> Sender:
    """Return a flow under NSCC with 60 packets, on the network of the reference."""
    transport = Transport(recovery="sack", congestion="nscc", sack_threshold=threshold, **options)
    sender = Sender(Scenario(transport=transport), packets=400, gap_ps=330 * PS_PER_NS)
    rtt_ps = int(NSCC["reference_us"] * PS_PER_US)
    targets = NSCC["target_rtts_with_trimming" if options.get("trimming") else "target_rtts"]
    sender.rules = sender.rules._replace(
        target_ps=int(targets * rtt_ps), zero_load_rtt_ps=rtt_ps, bdp_scale=ONE
    )
    sender.state.base_ps = rtt_ps
    congestion.start(sender.state, sender.rules, hops=6)
    return sender


def grown(sender: Sender, delay_ps: int, packets: int, first_packets: int = 40) -> float:
    """Return by how many packets the window grows for so many unmarked ones."""
    sender.state.window = first_packets * ONE
    sender.state.first_ps = sender.state.adjusted_ps = LATE
    sender.state.quick_ps = 2 * LATE
    sender.state.acked += packets
    nscc.on_ack(sender.state, sender.rules, False, sender.state.base_ps + delay_ps, LATE)
    return float(sender.state.window / ONE - first_packets)


@pytest.mark.parametrize("trimming", [False, True])
def test_the_scale_and_the_target_are_its(trimming: bool) -> None:
    scenario = Scenario(transport=Transport(recovery="sack", congestion="nscc", trimming=trimming))
    our_rules = rules(scenario)
    product = scenario.fabric.rate_gbps * scenario.zero_load_rtt_ps / PS_PER_US
    reference = NSCC["reference_gbps"] * NSCC["reference_us"]
    assert our_rules.bdp_scale / ONE == pytest.approx(product / reference, rel=1e-4)
    targets = NSCC["target_rtts_with_trimming" if trimming else "target_rtts"]
    assert our_rules.target_ps == pytest.approx(targets * scenario.zero_load_rtt_ps, abs=1)


def test_windows_are_as_large_and_as_small() -> None:
    sender = flow()
    packets = NSCC["largest_window_bdp"] * NSCC["reference_us"] * 1000 / 330
    assert sender.state.window / ONE == pytest.approx(packets, rel=1e-3)
    sender.state.window = ONE
    nscc.give_up_a_packet(sender.state)
    assert sender.state.window / ONE == NSCC["smallest_window_packets"]


def test_increases_are_as_large() -> None:
    target_ps = int(NSCC["target_rtts"] * NSCC["reference_us"] * PS_PER_US)
    more_than = NSCC["adjust_after_packets"] + 1
    fair = grown(flow(), target_ps, more_than)
    assert fair == pytest.approx(NSCC["fair_increase_packets_a"] * more_than / 40, rel=1e-3)
    half = grown(flow(), target_ps // 2, more_than)
    proportional = NSCC["proportional_increase_packets_a"] / 2
    assert half == pytest.approx(proportional * more_than / 40, rel=1e-3)
    assert grown(flow(), target_ps, more_than - 1) == 0, "paid later"

    sender = flow()
    clear_ps = int(NSCC["fast_increase_below_us"] * PS_PER_US) - 1
    grown(sender, clear_ps, 41)
    assert grown(sender, clear_ps, 4) >= 4 * NSCC["fast_increase_a"]


def test_the_mean_and_cuts_are_its() -> None:
    sender = flow()
    nscc.average(sender.state, sender.rules, True, 80 * PS_PER_US)
    assert sender.state.mean_delay_ps == 80 * PS_PER_US * NSCC["delay_gain"]

    # At twice the target gamma is for half of the delay; far above it a cut has a largest size.
    sender.state.mean_delay_ps = 2 * sender.rules.target_ps
    sender.state.window = 40 * ONE
    nscc.shrink(sender.state, sender.rules, LATE)
    assert sender.state.window / ONE == pytest.approx(40 * (1 - NSCC["gamma"] / 2), rel=1e-3)
    sender.state.mean_delay_ps = 100 * sender.rules.target_ps
    sender.state.window = 40 * ONE
    nscc.shrink(sender.state, sender.rules, 2 * LATE)
    assert sender.state.window / ONE == pytest.approx(40 * NSCC["most_cut"], rel=1e-3)


@pytest.mark.parametrize("beyond", [0, 1])
def test_quick_adapt_comes_when_it_does(beyond: int) -> None:
    sender = flow()
    first = sender.state.window
    sender.state.quick_ps = 1
    sender.state.sent = 40
    few = int(NSCC["quick_adapt_below_share"] * first) // ONE
    sender.state.acked = few
    delay_ps = NSCC["quick_adapt_targets"] * sender.rules.target_ps + beyond
    nscc.quick_adapt(sender.state, sender.rules, True, delay_ps, LATE)
    assert sender.state.window == (few * ONE if beyond else first)


@pytest.mark.parametrize("window_packets", [1, 3, 10, 40, 1000])
def test_holes_are_late_after_as_many_packets(window_packets: int) -> None:
    sender = flow(threshold=None)
    largest = sender.state.window / ONE
    for _ in range(60):
        sender.send()
    sender.state.window = min(window_packets, largest) * ONE
    packets = max(LATE_HOLES["fewest_packets"], LATE_HOLES["windows"] * window_packets)
    packets = int(min(packets, largest))
    sender.state.acked = packets - 1
    sender.state.highest = packets
    assert sack.end_of_late(sender.state, sender.rules) == 0
    sender.state.acked = packets
    assert sack.end_of_late(sender.state, sender.rules) == 1


@pytest.mark.parametrize("policy", ["host_pkt_ar", "mrc", "uet_bitmap"])
def test_spraying_that_loses_nothing_has_next_to_nothing_sent_again(policy: str) -> None:
    scenario = Scenario(
        policy=policy,
        fabric=Fabric(queue_bytes=0),
        collective=Collective(message_bytes=4 << 20),
        transport=Transport(recovery="sack", congestion="nscc"),
    )
    record = run(scenario).record
    assert record.dropped == 0
    assert record.transmissions - record.packets < record.packets / 1000


def test_a_loss_costs_what_it_costs_there() -> None:
    quick = flow()
    for _ in range(8):
        quick.send()
    for psn in range(1, 8):
        quick.ack(psn, quick.rules.zero_load_rtt_ps + psn)
    before = quick.state.window
    assert quick.send()[0] == 0
    assert before - quick.state.window == LOSS["out_of_order"] * ONE

    slow = flow()
    slow.send()
    slow.state.sent = 1
    before = slow.state.window
    # The window is full, so that only the timeout lets anything go.
    slow.state.packets = 1
    assert slow.send(slow.ready_ps())[0] == 0
    assert before - slow.state.window == LOSS["timeout"] * ONE

    cut = flow(trimming=True)
    for _ in range(8):
        cut.send()
    before = cut.state.window
    cut.nack(3, cut.rules.zero_load_rtt_ps)
    assert before - cut.state.window == LOSS["nack"] * ONE


def test_labels_are_remembered_as_there() -> None:
    reps, bitmap = table("uet_htsim.toml", "reps"), table("uet_htsim.toml", "bitmap")
    scenario = Scenario(policy="host_pkt_ar")
    our_rules = rules(scenario)
    ours = {
        "ring": state.RING,
        "explore_packets": our_rules.explore_packets,
        "freeze_us": our_rules.freeze_ps / PS_PER_US,
    }
    assert ours == reps
    assert bitmap.pop("paths") == state.PATHS

    costs = {}
    for news, cost in bitmap.items():
        sender = Sender(Scenario(policy="uet_bitmap"))
        label = sender.send(0)[1]
        if news == "timeout":
            sender.send(LATE)
        elif news == "nack":
            labels.on_nack(sender.state, sender.rules, label, 1)
        else:
            labels.on_ack(sender.state, sender.rules, label, True, 1)
        costs[news] = max(sender.state.penalties), cost
    assert all(ours == theirs for ours, theirs in costs.values()), costs


def test_cut_packets_are_as_long() -> None:
    cut_bytes = table("uet_htsim.toml", "receiver")["cut_packet_bytes"]
    assert Scenario().packets.ack_bytes == cut_bytes
