"""The control plane at scale: plans, entries per switch, installation, lost packets.

.venv/bin/python benchmarks/control_plane.py [--quick] [--json] [--figure FILE]

Each k is planned in a process of its own, so that its memory is its own. Switches are in this
process, then processes behind gRPC on Unix sockets, which end with this process; packets are
counted in virtual time and, with root and Mininet, on veths.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from benchmarks.scale.installing import installing_in_process, installing_over_grpc
from benchmarks.scale.planning import Row, planning, scenario
from benchmarks.scale.showing import (
    INSTALL_COLUMNS,
    PACKET_COLUMNS,
    PLAN_COLUMNS,
    SHAPE_COLUMNS,
    draw,
    table,
)
from emulation.errors import EmulationError
from emulation.mininet.building import mininet_fabric
from emulation.mininet.run import run_on
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario

SIZES = (8, 16, 32, 64)
QUICK_SIZES = (8, 16)
CORE_LINK = "agg0_0-core0_0"


def in_own_process(k: int) -> Row:
    """Plan one size in a fresh process."""
    command = [sys.executable, __file__, "--plan", str(k)]
    row: Row = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return row


def interruptions() -> Iterator[Row]:
    """Count the packets that a core link's failure and its return cost in virtual time, by G."""
    for rtts in (0, 0.5, 1, 2):
        lost, unrouted, sent = _virtual(
            Failures(events=(FailureEvent(link=CORE_LINK, down_ns=5_000),), convergence_rtt=rtts)
        )
        yield {
            "what": f"virtual: a core link fails, G = {rtts:g} RTT",
            "lost": lost,
            "unrouted": unrouted,
            "sent": sent,
        }

    comes_back = Failures(events=(FailureEvent(link=CORE_LINK, down_ns=0, up_ns=5_000),))
    lost, unrouted, sent = _virtual(comes_back)
    yield {
        "what": "virtual: it comes back under load",
        "lost": lost,
        "unrouted": unrouted,
        "sent": sent,
    }


def _virtual(failures: Failures) -> tuple[int, int, int]:
    accounts = VirtualFabric(scenario(4, failures=failures)).run().accounts
    return accounts.lost, accounts.unrouted, accounts.sent


def real_interruption() -> Row:
    """Fail a core link on Mininet with G = 0; raises EmulationError where there is no Mininet."""
    failures = Failures(events=(FailureEvent(link=CORE_LINK, down_ns=1e9),))
    slow = Fabric(k=4, rate_gbps=0.001, latency_ns=10e6)
    chosen = Scenario(
        policy="ofan", fabric=slow, collective=Collective(message_bytes=1 << 18), failures=failures
    )

    with mininet_fabric(chosen) as fabric:
        outcome = run_on(fabric)
        took_ms = (fabric.installations[0].took_ps or 0) / 10**9

    accounts = outcome.accounts
    label = (
        f"Mininet (30 packets/s a host): {CORE_LINK} fails, G = 0, installed {took_ms:.0f} ms after"
    )
    return {
        "what": label,
        "lost": accounts.lost,
        "unrouted": accounts.unrouted,
        "sent": accounts.sent,
    }


def measure(quick: bool, say: Callable[[str], object]) -> dict[str, list[Row]]:
    """Measure everything."""
    rows: dict[str, list[Row]] = {"plans": [], "installations": [], "packets": []}
    for k in QUICK_SIZES if quick else SIZES:
        say(f"planning k = {k} ...")
        rows["plans"].append(in_own_process(k))

    for k in (4,) if quick else (4, 8):
        say(f"installing on {scenario(k).tree.switches} switches ...")
        rows["installations"] += [installing_in_process(k), installing_over_grpc(k)]

    say("counting packets ...")
    rows["packets"] += interruptions()
    try:
        rows["packets"] += [] if quick else [real_interruption()]
    except EmulationError as error:
        say(f"Mininet is left out: {error}")

    return rows


def main() -> None:
    """Measure, then print tables or JSON."""
    options = argparse.ArgumentParser(description="Scale of the control plane.")
    options.add_argument(
        "--quick", action="store_true", help="up to k = 16, 20 switches, no Mininet"
    )
    options.add_argument("--json", action="store_true", help="print JSON")
    options.add_argument("--figure", type=Path, help="write a picture of the plans")
    options.add_argument("--plan", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()

    if chosen.plan:
        print(json.dumps(planning(chosen.plan)))
        return

    rows = measure(chosen.quick, lambda line: print(line, file=sys.stderr))
    if chosen.figure:
        draw(rows["plans"], chosen.figure)

    if chosen.json:
        print(json.dumps(rows, indent=2))
        return

    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(f"{os.cpu_count()} cores; CPU seconds for plans, seconds for installation\n")
    tables = (("Plans", PLAN_COLUMNS, "plans"), ("What a switch holds", SHAPE_COLUMNS, "plans"))

    for title, columns, name in (
        *tables,
        ("Installation", INSTALL_COLUMNS, "installations"),
        ("Packets", PACKET_COLUMNS, "packets"),
    ):
        console.print(table(title, columns, rows[name]), "")


if __name__ == "__main__":
    main()
