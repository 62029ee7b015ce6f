"""Collectives that a fabric carries by default: each host sends about as much in all of them.

A training step is generated for the fabric's number of hosts, from a published model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from fattree.demand.workloads.file import About, write_workload
from fattree.errors import FabricError
from fattree.experiment.model import Collective, Job, Settings
from fattree.generators.model import read_model
from fattree.generators.training import training_graph
from fattree.generators.training_stages import Step
from fattree.texts.shipped import EXPERIMENTS

PERMUTATION, ALL_TO_ALL, RING, STEP = "permutation", "all-to-all", "ring all-reduce", "step"
WORKLOADS = (PERMUTATION, ALL_TO_ALL, RING, STEP)
SENTENCES = {
    PERMUTATION: "each host sends 1 MiB to another one",
    ALL_TO_ALL: "groups of about 64 hosts, some below each edge switch; each host sends 256 KiB in"
    " equal parts to all others of its group",
    RING: "the hosts of the same number below all edge switches reduce by ring, 256 KiB sent each",
    STEP: "a training step of a dense model, tensor parallel in servers of 8, 4 pipeline stages,"
    " 256 KiB sent each",
}
OWN = "yours"
MESSAGE_BYTES = 1 << 20
# Of the other collectives: their many small messages cost the simulator more.
HOST_BYTES = 256 << 10
# The hosts of an all-to-all, as of the GPUs that share experts.
GROUP = 64
MODEL = "llama_405b.json"
SERVER = 8
STAGES = 4


def workloads_of(
    settings: Settings, folder: Path, chosen: Sequence[str] = WORKLOADS
) -> tuple[dict[str, Settings], list[str]]:
    """Return the settings of each collective by name, and a line for each that is left out.

    The training step is written to `folder`.
    """
    tried = {name: _tried(settings, name, folder) for name in chosen}
    return (
        {name: outcome for name, outcome in tried.items() if isinstance(outcome, Settings)},
        [
            f"{name} is left out: {outcome}"
            for name, outcome in tried.items()
            if isinstance(outcome, str)
        ],
    )


def _tried(settings: Settings, name: str, folder: Path) -> Settings | str:
    """Return the settings of a collective, or the objection to it on this fabric."""
    try:
        return _with(settings, name, folder)
    except FabricError as error:
        return str(error)


def _with(settings: Settings, name: str, folder: Path) -> Settings:
    match name:
        case "permutation":
            size = MESSAGE_BYTES * planes_of(settings)
            return _collective(settings, {"matrix": "permutation", "message_bytes": size})
        case "all-to-all":
            return settings.model_copy(
                update={"collective": Collective(), "jobs": groups(settings)}
            )
        case "ring all-reduce":
            return settings.model_copy(update={"collective": Collective(), "jobs": rings(settings)})
        case _:
            file = training_step(settings, folder)
            return _collective(settings, file)


def _collective(settings: Settings, values: Mapping[str, Any]) -> Settings:
    return settings.model_copy(update={"collective": Collective.model_validate(values), "jobs": ()})


def groups(settings: Settings) -> tuple[Job, ...]:
    """Return all-to-alls of groups: a few hosts below each edge switch, about 64 together."""
    edges = edges_of(settings)
    below = settings.fabric.tree.hosts_per_edge
    width = next(size for size in range(max(1, GROUP // edges), 0, -1) if below % size == 0)
    peers = width * edges - 1
    payload = settings.packets.payload_bytes
    # Whole packets: a message of a packet and a byte would take two.
    size = max(1, round(HOST_BYTES * planes_of(settings) / peers / payload)) * payload
    return tuple(
        _job(settings, f"group{first // width}", f"{first}-{first + width - 1}", "all_to_all", size)
        for first in range(0, below, width)
    )


def rings(settings: Settings) -> tuple[Job, ...]:
    """Return an all-reduce by ring of the n-th hosts of all edge switches, for each n."""
    edges = edges_of(settings)
    # Each host sends 2 (E - 1) / E of the message.
    size = ceil(HOST_BYTES * planes_of(settings) * edges / (2 * (edges - 1)))
    return tuple(
        _job(settings, f"ring{number}", str(number), "all_reduce", size)
        for number in range(settings.fabric.tree.hosts_per_edge)
    )


def _job(settings: Settings, name: str, numbers: str, matrix: str, size: int) -> Job:
    # Hosts of a collective are machines, which have the names of the first plane's.
    last = settings.fabric.tree.pods // planes_of(settings) - 1
    hosts = f"h0-{last}_*_{numbers}"
    collective = {"matrix": matrix, "message_bytes": size, "hosts": hosts}
    return Job.model_validate({"name": name, "collective": collective})


def edges_of(settings: Settings) -> int:
    """Return the number of edge switches, with rails of one rail."""
    return settings.fabric.tree.edges // planes_of(settings)


def planes_of(settings: Settings) -> int:
    """Return the number of rails, 1 without them."""
    return settings.fabric.planes or 1


def training_step(settings: Settings, folder: Path) -> dict[str, Any]:
    """Write a training step for all hosts to a file; return the collective that runs it.

    Raises FabricError where the hosts are no whole replicas of 8 GPUs in 4 stages.
    """
    hosts = settings.fabric.tree.hosts
    planes = planes_of(settings)
    of_replica = SERVER * STAGES
    if hosts % of_replica or hosts == of_replica:
        raise FabricError(
            f"{hosts} hosts are no two or more replicas of {SERVER} GPUs in {STAGES} stages"
        )
    if planes not in (1, SERVER):
        raise FabricError(f"a server has {SERVER} GPUs, and there are {planes} rails")

    model = read_model(str(EXPERIMENTS / MODEL))
    replicas = hosts // of_replica
    step = Step(tensor=SERVER, pipeline=STAGES, data=replicas, batch=STAGES * replicas, buckets=1)
    whole = training_graph(model, step)
    step = replace(step, scale=max(1, round(int(whole.size.sum()) / (HOST_BYTES * hosts))))
    graph = training_graph(model, step)
    path = folder / f"step-{hosts}.parquet"
    write_workload(path, graph, About(f"a step on {hosts} GPUs", hosts, SERVER, step.scale))
    placement = {"placement": "rail"} if planes > 1 else {}
    return {"matrix": "workload", "file": str(path), **placement}
