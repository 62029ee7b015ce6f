"""MRC beside its publication: the runs behind five tables of docs/load-balancers-since.md.

python -m benchmarks.tables mrc_loss mrc_incast mrc_reboot mrc_port since_nscc
"""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from fattree.policies import POLICIES
from fattree.units import PS_PER_US
from reproduction.report.figure import grid
from reproduction.report.schemes import MIB
from sim.runs.engine import run
from sim.runs.results import Result

# 64 hosts below eight leaves, which eight spines connect.
LEAVES = HOSTS_PER_LEAF = 8
FABRIC: Mapping[str, Any] = {
    "fabric__edges_per_pod": LEAVES,
    "fabric__hosts_per_edge": HOSTS_PER_LEAF,
    "fabric__aggs_per_pod": 8,
    "load_balancer__connections": "pair",
}
MRC: Mapping[str, Any] = {
    "transport__recovery": "sack",
    "transport__congestion": "nscc",
    "transport__trimming": True,
    "transport__acks_first": True,
}
ROCE: Mapping[str, Any] = {
    "transport__recovery": "go_back_n",
    "transport__congestion": "dcqcn",
    "load_balancer__connections": "message",
}
# A NIC's timer of 1 ms (ours); our senders wait for three round trips at least.
SLOW_TIMER_US = 1_000
STACKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "MRC over SRv6": ("mrc_srv6", MRC),
    "MRC over ECMP": ("mrc", MRC),
    "RoCE, 1 queue pair": ("flow", ROCE),
    "RoCE, 4 queue pairs": ("subflow", ROCE),
    "RoCE, 1 queue pair, timer of 1 ms": ("flow", {**ROCE, "timer_us": SLOW_TIMER_US}),
}
COLLECTIVES: Mapping[str, Mapping[str, Any]] = {
    "ring all-reduce, 8 MiB": {
        "collective__matrix": "all_reduce",
        "collective__algorithm": "ring",
        "collective__message_bytes": 8 * MIB,
    },
    "ring all-reduce, 64 MiB": {
        "collective__matrix": "all_reduce",
        "collective__algorithm": "ring",
        "collective__message_bytes": 64 * MIB,
    },
    "all-to-all, 1 MiB a pair": {
        "collective__matrix": "all_to_all",
        "collective__message_bytes": MIB,
    },
}
LOSSES = (0.0, 0.001, 0.01)
SEEDS = range(1, 6)
LOSS_COLUMNS = ("64 hosts", "stack", *(f"{100 * share:g} % lost" for share in LOSSES))


def lossy(share: float) -> list[dict[str, Any]]:
    """Return losses of a share of all packets, half of it on each host's link on the way."""
    hosts = [(leaf, host) for leaf in range(LEAVES) for host in range(HOSTS_PER_LEAF)]
    return [{"host": f"h0_{leaf}_{host}", "share": share / 2} for leaf, host in hosts if share]


def runs(policy: str, settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Result]:
    """Return the results of settings on the fabric, a seed each."""
    merged = {**FABRIC, **settings}
    timer_us = merged.pop("timer_us", None)
    if timer_us:
        (scenario,) = grid(merged, (policy,), (1,))
        merged["transport__timer_floor_rtt"] = timer_us * PS_PER_US / scenario.zero_load_rtt_ps

    return [run(scenario) for scenario in grid(merged, (policy,), seeds)]


def beside_losses(collective: str, stack: str) -> Sequence[str]:
    """Return a stack's row: the share of the bound's throughput that is left, by loss."""
    policy, transport = STACKS[stack]
    cells = []
    for share in LOSSES:
        settings = {**COLLECTIVES[collective], **transport, "failures__losses": lossy(share)}
        results = runs(policy, settings, SEEDS)
        cells.append(reach([100 * r.record.bound_ps / r.record.cct_ps for r in results]))

    return collective if stack == next(iter(STACKS)) else "", stack, *cells


def reach(shares: Sequence[float]) -> str:
    """Return the median, the least and the most of percentages."""
    return f"{median(shares):.0f} % ({min(shares):.0f} to {max(shares):.0f})"


LOSS_ROWS = {
    f"{collective}, {stack}": partial(beside_losses, collective, stack)
    for collective in COLLECTIVES
    for stack in STACKS
}

# Seven hosts below leaves of their own send to the first host of the eighth leaf; the victim goes
# from beside the first of them to another host of that leaf.
RECEIVER, SENDERS = 0, range(HOSTS_PER_LEAF, LEAVES * HOSTS_PER_LEAF, HOSTS_PER_LEAF)
VICTIM = (HOSTS_PER_LEAF + 1, 1)
INCAST_BYTES = 16 * MIB
INCAST_GBPS = 400
INCAST_SEEDS = range(1, 17)
PFC = {"fabric__flow_control": "pfc"}
INCASTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "MRC over SRv6": ("mrc_srv6", MRC),
    "MRC over ECMP": ("mrc", MRC),
    "RoCE with PFC, DCQCN": ("flow", {**ROCE, **PFC}),
    "RoCE with PFC alone": ("flow", {**ROCE, **PFC, "transport__congestion": "fixed"}),
}
INCAST_COLUMNS = (
    *("stack", "slowed victim (Gb/s)", "victim at full rate (Gb/s)", "runs of each"),
    *("incast over the bound", "dropped"),
)


def beside_incast(stack: str) -> Sequence[str]:
    """Return a stack's row: the victim's rate in runs that slow it down, and in the others."""
    policy, transport = INCASTS[stack]
    settings = {
        "fabric__rate_gbps": INCAST_GBPS,
        "fabric__queue_bytes": 400_000,
        "collective__matrix": "pairs",
        "collective__pairs": [*((sender, RECEIVER) for sender in SENDERS), VICTIM],
        "collective__message_bytes": INCAST_BYTES,
    }
    results = runs(policy, {**settings, **transport}, INCAST_SEEDS)
    rates = [victim_gbps(result) for result in results]
    # On a path that the incast leaves out it has almost all of the link.
    slow = [rate for rate in rates if rate < INCAST_GBPS / 2]
    fast = [rate for rate in rates if rate >= INCAST_GBPS / 2]
    over = median(100 * result.increase for result in results)
    return (
        stack,
        gbps(slow),
        gbps(fast),
        f"{len(slow)}, {len(fast)}",
        f"{over:.1f} %",
        f"{sum(result.record.dropped for result in results):,}",
    )


def gbps(rates: Sequence[float]) -> str:
    """Return the median, the least and the most of rates."""
    return f"{median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f})" if rates else "none"


def victim_gbps(result: Result) -> float:
    """Return the rate of the victim's whole message, over all its subflows."""
    numbers = [
        number for number, source in enumerate(result.flows.source.tolist()) if source == VICTIM[0]
    ]
    start_ps = min(int(result.start_ps[number]) for number in numbers)
    done_ps = max(int(result.done_ps[number]) for number in numbers)
    return 8000 * INCAST_BYTES / (done_ps - start_ps)


INCAST_ROWS = {stack: partial(beside_incast, stack) for stack in INCASTS}

# A switch above the leaves (T1) is away in the middle of the ring, and no route follows.
AWAY_NS = (200_000, 700_000)
REBOOTED = ("MRC over SRv6", "MRC over ECMP", "RoCE, 1 queue pair")
REBOOT_COLUMNS = ("stack", "all switches up", "a spine away for 500 µs", "packets lost")


def beside_reboot(stack: str) -> Sequence[str]:
    """Return a stack's row: the share of the bound's throughput, and the packets lost."""
    policy, transport = STACKS[stack]
    down_ns, up_ns = AWAY_NS
    away = {
        "failures__events": [{"switch": "agg0_0", "down_ns": down_ns, "up_ns": up_ns}],
        "failures__convergence_rtt": float("inf"),
    }
    ring = {**COLLECTIVES["ring all-reduce, 64 MiB"], **transport}
    whole, rebooted = runs(policy, ring, SEEDS), runs(policy, {**ring, **away}, SEEDS)
    lost = [result.record.lost_to_failure for result in rebooted]
    return (
        stack,
        *(
            reach([100 * r.record.bound_ps / r.record.cct_ps for r in results])
            for results in (whole, rebooted)
        ),
        f"{median(lost):,.0f} ({min(lost):,} to {max(lost):,})",
    )


REBOOT_ROWS = {stack: partial(beside_reboot, stack) for stack in REBOOTED}

# Each host has eight ports of 100 Gb/s, each in a plane of its own; the first host loses a port.
PORTS = 8
EIGHT_PORTS: Mapping[str, Any] = {
    "fabric__planes": PORTS,
    "fabric__rate_gbps": 800 / PORTS,
    "collective__matrix": "all_reduce",
    "collective__algorithm": "ring",
    "collective__message_bytes": 256 * MIB,
    **MRC,
}
PORT_SEEDS = range(1, 4)
PORT_DOWN_NS, PORT_UP_NS = 1_000_000, 3_000_000
PORT_COLUMNS = ("stack", "`plane_use`", "all ports up", "a port down for 2 ms", "for good")
PLANE_USES = ("draw", "spray")


def beside_port(stack: str, use: str) -> Sequence[str]:
    """Return a stack's row: the share of the whole fabric's throughput, by a port's outage."""
    policy, _ = STACKS[stack]
    settings = {**EIGHT_PORTS, "fabric__plane_use": use}
    event = {"host": "h0_0_0", "down_ns": PORT_DOWN_NS}
    whole = runs(policy, settings, PORT_SEEDS)
    cells = [reach([100 * r.record.bound_ps / r.record.cct_ps for r in whole])]
    for outage in ({**event, "up_ns": PORT_UP_NS}, event):
        # Without another port for its packets a port has to come back.
        if use != "draw" and "up_ns" not in outage:
            cells.append("refused")
            continue

        results = runs(policy, {**settings, "failures__events": [outage]}, PORT_SEEDS)
        shares = [
            100 * up.record.bound_ps / down.record.cct_ps
            for up, down in zip(whole, results, strict=True)
        ]
        cells.append(reach(shares))

    return stack if use == PLANE_USES[0] else "", f"`{use}`", *cells


PORT_ROWS = {
    f"{stack}, {use}": partial(beside_port, stack, use)
    for stack in ("MRC over SRv6", "MRC over ECMP")
    for use in PLANE_USES
}

# The transport that MRC is made for, on 128 hosts (k = 8).
NSCC_COLUMNS = ("load balancer", "an ACK a packet", "an ACK for 8 packets", "three slow links")
NSCC_POLICIES = ("ofan", "host_pkt", "host_pkt_ar", "mrc_srv6", "mrc", "uet_bitmap")
SLOW_LINKS = [{"link": f"edge{pod}_0-agg{pod}_0", "rate": 0.5} for pod in range(3)]
NSCC_SETTINGS: Sequence[Mapping[str, Any]] = (
    {},
    {"transport__packets_per_ack": 8},
    {"failures__degraded": SLOW_LINKS, "failures__convergence_rtt": float("inf")},
)


def with_nscc(policy: str) -> Sequence[str]:
    """Return a load balancer's row: its time over the bound in percent, by setting."""
    cells = []
    for settings in NSCC_SETTINGS:
        merged = {
            **MRC,
            # Without its classes, as in the report: each load balancer has the same switches.
            "transport__acks_first": False,
            "fabric__k": 8,
            "collective__message_bytes": 4 * MIB,
            **settings,
        }
        over = [100 * run(scenario).increase for scenario in grid(merged, (policy,), SEEDS)]
        cells.append(f"{median(over):.1f} ({min(over):.1f} to {max(over):.1f})")

    return POLICIES[policy].label, *cells


NSCC_ROWS = {policy: partial(with_nscc, policy) for policy in NSCC_POLICIES}
