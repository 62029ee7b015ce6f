"""Runs on a GPU beside the same runs on a processor, and the names of arrays that differ.

    python -m tests.sim.gpu_runs             # every small run, on the GPU
    python -m tests.sim.gpu_runs --large     # and on fabrics up to 65,536 hosts
    NUMBA_ENABLE_CUDASIM=1 python -m tests.sim.gpu_runs NAME ...

The third line needs no GPU: numba's simulator interprets kernels, with a Python thread for each of
a block's. The process is its own, as numba asks once whether to simulate.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numba.core import config
from numpy.typing import NDArray

from fattree.experiment.model import (
    Collective,
    Degraded,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Loss,
    Scenario,
    Transport,
)
from sim.arrays import network
from sim.arrays.network import Network, build
from sim.gpu import engine
from sim.runs.engine import Device, simulate

Columns = Iterator[tuple[str, NDArray[Any]]]

SMALL = Collective(message_bytes=4 * 4096)
LATE = FailureEvent(link="agg0_0-core0_0", down_ns=1500, up_ns=9000)
# By name: the settings of a scenario beside k = 4 and four packets from each host.
RUNS: dict[str, dict[str, Any]] = {
    "ofan": {},
    "jsq": {"policy": "jsq"},
    "host_dr": {"policy": "host_dr"},
    "host_pkt": {"policy": "host_pkt"},
    "flow": {"policy": "flow"},
    "simple_rr": {"policy": "simple_rr"},
    "host_pkt_ar": {"policy": "host_pkt_ar"},
    "switch_pkt": {"policy": "switch_pkt"},
    "themis": {"policy": "themis"},
    "links fail and heal": {
        "policy": "rsq",
        "failures": Failures(events=(LATE,), convergence_rtt=0.5),
        "collective": Collective(message_bytes=8 * 4096),
    },
    "drops and SACK": {
        "policy": "jsq",
        "fabric": Fabric(k=4, queue_bytes=9_000),
        "transport": Transport(recovery="sack"),
        "collective": Collective(message_bytes=8 * 4096),
    },
    "flows share a host": {
        "collective": Collective(matrix="incast", message_bytes=4096),
        "transport": Transport(sharing="active"),
    },
    "an all-to-all in a small pool": {
        "collective": Collective(matrix="all_to_all", message_bytes=4096)
    },
    "trimming": {
        "fabric": Fabric(k=4, queue_bytes=9_000),
        "transport": Transport(trimming=True),
        "collective": Collective(message_bytes=8 * 4096),
    },
    "two planes, slow and lossy links": {
        "fabric": Fabric(k=4, planes=2),
        "failures": Failures(
            losses=(Loss(link="edge0_0-agg0_0", share=0.1),),
            degraded=(Degraded(link="edge1_0-agg1_0", rate=0.5),),
        ),
    },
    "micro-segments": {"policy": "mrc_srv6", "failures": Failures(rate=0.05)},
    "connections": {
        "policy": "mrc",
        "collective": Collective(matrix="ring", message_bytes=8 * 4096, steps=2),
        "transport": Transport(recovery="sack"),
        "load_balancer": LoadBalancer(connections="pair"),
        "failures": Failures(losses=(Loss(link="edge0_0-agg0_0", share=0.2),)),
    },
    "NICs that put in order": {
        "policy": "switch_pkt_ar",
        "transport": Transport(recovery="go_back_n", reorder_packets=4),
    },
    "long pauses": {"transport": Transport(rate_limit=1e-4, random_phases=False)},
    "stale queues": {
        "policy": "switch_pkt_ar",
        "load_balancer": LoadBalancer(queue_staleness_ns=700),
    },
}
# (k, bytes a message): 1 MiB of 65,536 hosts is the subject of `docs/decisions/gpu.md`.
LARGE = ((8, 1 << 20), (16, 1 << 20), (32, 1 << 18), (64, 1 << 20))
# More than a small fabric has switches.
MANY = 64
# Where a packet lies depends on who took a chunk first, and nothing else does.
SLOTS = ("taken", "tail", "cursor")


def scenario(name: str) -> Scenario:
    """Return a small run's scenario."""
    settings: dict[str, Any] = {"fabric": Fabric(k=4), "collective": SMALL, "seed": 5}
    return Scenario(**(settings | RUNS[name]))


def large_scenarios() -> Iterator[tuple[str, Scenario]]:
    """Yield runs on large fabrics."""
    for k, size in LARGE:
        for policy in ("ofan", "jsq"):
            made = Scenario(
                policy=policy, fabric=Fabric(k=k), collective=Collective(message_bytes=size)
            )
            yield f"{policy}, k = {k}", made


def columns(value: Any, name: str) -> Columns:
    """Yield the arrays of a world or a result, by name, records column by column."""
    fields: Sequence[str] = getattr(value, "_fields", None) or tuple(
        getattr(value, "__dataclass_fields__", ())
    )
    for field in fields:
        if field not in ("pool", "scenario", "cpu_s", "routes"):
            yield from columns(getattr(value, field), f"{name}.{field}")

    if isinstance(value, np.ndarray) and value.dtype.names:
        for column in value.dtype.names or ():
            yield f"{name}.{column}", value[column]
    elif not fields and value is not None:
        yield name, np.asarray(value)


def shown(run_of: Scenario, device: Device) -> dict[str, NDArray[Any]]:
    """Return all that a run leaves behind."""
    made: Network = build(run_of)
    result = simulate(made, None, None, 0, device=device)
    both = [*columns(result, "result"), *columns(made.world, "world")]
    return {name: array.copy() for name, array in both if name.rpartition(".")[2] not in SLOTS}


def differing(run_of: Scenario) -> list[str]:
    """Return the names of the arrays that a GPU leaves otherwise than a processor."""
    on_cpu, on_gpu = shown(run_of, "cpu"), shown(run_of, "gpu")
    assert on_cpu.keys() == on_gpu.keys()
    return [name for name, array in on_cpu.items() if not np.array_equal(array, on_gpu[name])]


def main(names: Sequence[str]) -> None:
    """Write the names of the arrays that differ as JSON, by run."""
    # Simulated threads take turns as often as they can; blocks come one after the other.
    if config.ENABLE_CUDASIM:
        sys.setswitchinterval(1e-6)
        engine.SWITCHES_A_BLOCK = MANY

    chosen = [name for name in names if name != "--large"] or list(RUNS)
    differences = {}
    for name in chosen:
        # Chunks run out in the middle, again and again.
        usual = network._likely_chunks
        if "small pool" in name:
            network._likely_chunks = lambda *_: 1

        differences[name] = differing(scenario(name))
        network._likely_chunks = usual

    if "--large" in names:
        differences |= {
            name: differing(large_scenario) for name, large_scenario in large_scenarios()
        }

    sys.stdout.write(json.dumps(differences))


if __name__ == "__main__":
    main(sys.argv[1:])
