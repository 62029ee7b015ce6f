"""What every column of results means, in a sentence: JSON, CSV and Parquet alike have them.

`python -m fattree.columns PAGE` writes the documentation's page.
"""

import sys
from pathlib import Path

from fattree.topology import SWITCH_LAYERS

LAYERS = f"one value for each of {', '.join(SWITCH_LAYERS)}"
COLUMNS = {
    "name": "The experiment's `name`.",
    "network": "`sim`, `virtual` or `mininet`.",
    "policy": "The load balancer, or the name of your program or host rule.",
    "k": "Of the fat-tree; 0 where the fabric has other counts.",
    "fabric": "The fabric in words.",
    "hosts": "How many hosts (NICs) the fabric has.",
    "matrix": "Who sends to whom; of several jobs each kind once, joined by `+`.",
    "message_bytes": "What each flow sends (`fsdp`: a shard of a layer); of several jobs the largest. A file of traffic has sizes of its own.",
    "packets": "Data packets of all messages.",
    "seed": "It fixes matrix, failures and all random choices.",
    "recovery": "`transport.recovery`.",
    "congestion": "`transport.congestion`.",
    "failure_rate": "`failures.rate`.",
    "convergence_rtt": "`failures.convergence_rtt`; `inf` (in JSON null): routes never change.",
    "cct_ps": "Collective completion time: the largest time that any flow takes, from when it could start to its last ACK.",
    "bound_ps": "The least `cct_ps` there can be: the longest chain of flows, each alone on empty links (appendix B), or what the host's link that carries most needs, if that is longer.",
    "increase": "(`cct_ps` - `bound_ps`) / `bound_ps`.",
    "sending_cct_ps": "As `cct_ps`, from each flow's first packet on, without the random phase before it.",
    "sending_bound_ps": "The least `sending_cct_ps` there can be: the longest chain of flows, each alone on empty links.",
    "sending_increase": "(`sending_cct_ps` - `sending_bound_ps`) / `sending_bound_ps`.",
    "fct_p50_ps": "The median of the flows' times, each from when it could start.",
    "fct_p99_ps": "Their 99th percentile.",
    "fct_p999_ps": "Their 99.9th percentile.",
    "max_queue_bytes": "The longest queue of any switch port at any time.",
    "max_queue_packets": "The same in data packets.",
    "mean_queue_packets": "The mean queue over all switch ports and the run, in data packets; empty where nobody measures it (Mininet).",
    "max_queue_layers": f"The longest queue of any port of a layer, in data packets: {LAYERS} (glossary: layers).",
    "mean_queue_layers": "The mean queue over a layer's ports and the run, in data packets.",
    "utilisation_layers": "The share of the run for which a layer's links carried bits, the mean over its links; gaps between packets do not count.",
    "dropped": "Packets that found a queue full, or no route.",
    "marked": "Packets that got an ECN mark.",
    "lost_to_failure": "Packets that went into a failed link or a dead switch, or that `failures.losses` took.",
    "transmissions": "Data packets that hosts have sent, those sent again and further symbols of erasure coding included.",
    "packet_hops": "Packets put on links, ACKs included: each counts once for every link.",
    "redraws": "How often links that fail at random were drawn anew because they would have cut flows off.",
    "freezes": "How often flows of REPS froze: from then on they take labels that worked.",
    "trimmed": "Data packets that found a queue full and were cut to their headers (`transport.trimming`).",
    "compute_ps": "Workloads: how long the longest chain of computations takes alone.",
    "scale": "Workloads: what bytes and computations were divided by.",
    "jobs_ps": "Several jobs: each one's completion time in ps, `NAME=PS`, with spaces between them.",
    "cpu_s": "Seconds of processor time that the run took.",
    "max_rss_bytes": "The most memory that the process has held.",
}
HEAD = """# Every column of results

A run is a row with these columns, whichever network it ran on: in `--json`, `--csv` and `--parquet` of `ofan sim run`, `sweep` and `results`, in `--json` and `--csv` of `ofan emulate` and `compare`, in `results.parquet`
of their folders, and as the fields of a `Record` in Python. Counters count packets of the whole run. `_ps` is picoseconds. A sweep's rows also have a column for each swept key that is none of these (`fabric.latency_ns`).
CSV has a column for each layer, as in `max_queue_layers.E>A`. This page is made from `fattree/columns.py` (`make reference`).

| column | |
|---|---|
"""


def page() -> str:
    """Return the documentation's page."""
    return HEAD + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in COLUMNS.items())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
