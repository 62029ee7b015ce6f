"""Swift's target delay and window, as the paper scales them to 800 Gb/s (appendix H)."""

from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from fattree.units import PS_PER_SECOND, PS_PER_US
from hostagent.rules import SWIFT_QUEUE_BYTES, rules
from hostagent.transports import swift
from hostagent.transports.state import SENDER, blank
from reproduction.report.figure import Data, Figure

KB = 1000
# Swift's own targets in us by the rate of a link in Gb/s; the RTT that the appendix takes off.
PUBLISHED = {50: 25.0, 100: 50.0}
PUBLISHED_RTT_US = 6.25
# Links of a path under one edge, within a pod, and through the core.
HOPS = (2, 4, 6)


def published_queue_bytes(rate_gbps: int) -> float:
    """Return the queueing part of Swift's published target, in bytes."""
    return (PUBLISHED[rate_gbps] - PUBLISHED_RTT_US) * 1e-6 * rate_gbps * 1e9 / 8


def mswift() -> Scenario:
    """Return the paper's network with MSwift."""
    transport = {"congestion": "mswift", "recovery": "sack"}
    return Scenario.model_validate({"transport": transport})


def started(hops: int) -> Any:
    """Return a sender as MSwift starts it, on a path of so many links."""
    scenario = mswift()
    sender = blank(SENDER)
    sender.gap_ps = scenario.slot_ps
    swift.start(sender, rules(scenario), hops)
    return sender


def table(data: Data) -> pl.DataFrame:
    """Return the settings that the appendix prints beside those of our hosts."""
    scenario = mswift()
    rtt_us = scenario.zero_load_rtt_ps / PS_PER_US
    line = scenario.zero_load_rtt_ps * scenario.rate_bps / PS_PER_SECOND / 8
    rows = [
        (
            f"queueing part of {PUBLISHED[rate]:g} µs at {rate} Gb/s",
            f"{paper} KB",
            f"{published_queue_bytes(rate) / KB:.1f} KB",
        )
        for rate, paper in ((50, 117), (100, 109))
    ]
    rows += [
        ("queueing part at 800 Gb/s: their mean", "113 KB", f"{SWIFT_QUEUE_BYTES / KB:g} KB"),
        ("zero-load RTT", f"{PUBLISHED_RTT_US} µs", f"{rtt_us:.2f} µs"),
        (
            "packets on the line in a zero-load RTT",
            "150",
            f"{line / (scenario.data_bytes + scenario.packets.gap_bytes):.0f}",
        ),
    ]
    for hops in HOPS:
        sender = started(hops)
        rows.append(
            (
                f"target delay of {hops} links, and the first window",
                "proportional to the hops; the target",
                f"{sender.target_ps / PS_PER_US:.2f} µs, {sender.window / swift.ONE:.0f} packets",
            )
        )

    return pl.DataFrame(
        [{"setting": name, "paper": paper, "ours": ours} for name, paper, ours in rows]
    )


FIGURE = Figure(
    name="swift_settings",
    title="Swift's settings",
    paper="Appendix H",
    caption=(
        "What MSwift's hosts are started with, read off the rules that run. The target is the "
        "zero-load RTT and the queueing part at the rate of the host's link. The second row is as "
        "the appendix has it: 50 µs at 100 Gb/s leave 547 KB, 15 µs would leave its 109 KB. Hosts "
        "have its mean of 113 KB all the same."
    ),
    table=table,
)
