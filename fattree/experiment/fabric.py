"""`[fabric]`: counts, rates, latencies and buffers."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fattree.errors import ExperimentError
from fattree.experiment.base import MOST_BYTES, Section, only_on, wrong
from fattree.files.text_file import read_text
from fattree.files.topo_file import fabric_of
from fattree.shape.topology import MOST_HOSTS, FatTree, refuse_unaddressable

# The paper's setting: 200 data packets of 4 KB or so.
DEFAULT_QUEUE_BYTES = 800_000

Rate = Annotated[float, Field(ge=0.001, le=10_000)]
Latency = Annotated[float, Field(ge=0.001, le=10**9)]
Count = Annotated[int, Field(ge=1, le=255)]


class Fabric(Section):
    """The fabric's counts (`shape.topology`), and its links. `queue_bytes` 0 means unlimited.

    `k` stands for the k-ary fat-tree, and is 0 with counts; `topology` is a file of htsim with
    counts, rates and latencies. Thresholds are fractions of `threshold_bytes`.
    """

    k: Annotated[int, Field(ge=0, le=128, multiple_of=2)] = 8
    """Ports of a switch of the fat-tree, which has k*k*k/4 hosts; 0 if counts describe another
    fabric.
    """
    topology: str | None = None
    """A topology file of htsim (`.topo`) instead of counts, rates and latencies; relative to the
    experiment's folder.
    """
    pods: Count | None = None
    """Instead of `k`, for any folded Clos (`docs/fabrics.md`): the number of pods, each with edges
    and aggs; by default 1.
    """
    edges_per_pod: Count | None = None
    """The number of edge switches (leaves) of a pod."""
    hosts_per_edge: Annotated[int, Field(ge=1, le=MOST_HOSTS)] | None = None
    """The number of hosts at an edge switch."""
    aggs_per_pod: Count | None = None
    """The number of aggregation switches (spines) of a pod, each linked to all edges of the pod."""
    cores_per_agg: Annotated[int, Field(ge=0, le=255)] | None = None
    """The number of core switches above an aggregation switch, each linked to the same aggregation
    switch of every pod; 0 in a leaf-spine.
    """
    edge_agg_links: Count | None = None
    """Parallel links between an edge and an aggregation switch; by default 1."""
    agg_core_links: Count | None = None
    """Parallel links between an aggregation and a core switch; by default 1."""
    planes: Annotated[int, Field(ge=2, le=255)] | None = None
    """The number of separate fabrics (rails), each with a NIC of every machine; a collective's
    hosts are the machines.
    """
    plane_use: Literal["spray", "keep", "draw"] | None = None
    """`spray` (default): each plane carries an equal part of every message; `keep`: each message
    uses one plane, in turn; `draw`: as `spray`, but while a host's port is down its other ports
    carry that part (`docs/fabrics.md`).
    """
    rate_gbps: Rate = 800
    """The rate of hosts' links, and of all other links without a rate of their own."""
    latency_ns: Latency = 500
    """The latency of hosts' links, and of all other links without a latency of their own."""
    # Those of links between switches, where they are others than the hosts'.
    edge_agg_gbps: Rate | None = None
    """The rate of links between edge and aggregation switches."""
    agg_core_gbps: Rate | None = None
    """The rate of links between aggregation and core switches."""
    edge_agg_latency_ns: Latency | None = None
    """The latency of links between edge and aggregation switches."""
    agg_core_latency_ns: Latency | None = None
    """The latency of links between aggregation and core switches."""
    queue_bytes: Annotated[int, Field(ge=0, le=MOST_BYTES)] = DEFAULT_QUEUE_BYTES
    """The buffer of every port; 0 means no limit."""
    threshold_bytes: Annotated[int, Field(gt=0, le=MOST_BYTES)] | None = None
    """The size of which ECN thresholds and queue bins are fractions; by default the buffer, or 800
    KB if the buffer has no limit.
    """
    flow_control: Literal["none", "pfc"] = "none"
    """`pfc`: switches pause the links by which too much comes in (IEEE 802.1Qbb), so that nothing
    is dropped; `queue_bytes` then is the buffer of what has come in by a port (`docs/lossless.md`).
    """
    headroom_bytes: Annotated[int | None, Field(ge=0, le=MOST_BYTES)] = None
    """With `pfc`: how much of the buffer is kept for what comes in after a link was told to pause;
    by default as much as may come at most.
    """
    pause_watchdog_us: Annotated[float | None, Field(ge=2, le=10**12)] = None
    """With `pfc`: after how long a pause a switch takes it for a storm, and drops or ignores it
    (`pause_watchdog`); by default never (`docs/lossless.md`).
    """
    pause_watchdog: Literal["drop", "ignore"] | None = None
    """Until the pause ends, a port that the watchdog has found `drop`s (default) what it has and
    what comes, or `ignore`s the pause and sends.
    """

    buffer: Annotated[Literal["static", "shared"], only_on("virtual", "sim")] = "static"
    """Whether every port has `queue_bytes` of its own, or all ports of a switch share so many bytes
    for each of them (`docs/lossless.md`).
    """
    buffer_alpha: Annotated[float | None, Field(ge=0.001, le=64), only_on("virtual", "sim")] = None
    """With `shared`: how many times the free memory a queue may hold (what has come in by a link,
    with `pfc`); by default 1.
    """

    @model_validator(mode="before")
    @classmethod
    def _no_k_beside_counts(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values

        # A stored experiment has the counts, too: it must not depend on files that may change.
        file = values.get("topology")
        if isinstance(file, str) and values.get("edges_per_pod") is None:
            try:
                read = fabric_of(read_text(file, ExperimentError), file)
            except ExperimentError as error:
                raise wrong("topology", f"fabric.topology: {error}") from None

            again = next((key for key in ("k", *read) if values.get(key) is not None), None)
            if again:
                raise wrong(
                    again,
                    f"{Path(file).name} sets all of [fabric] but buffers: remove fabric.{again}",
                )

            values = {**values, **read, "topology": Path(file).name}

        if "k" in values:
            return values

        return {**values, "k": 0} if any(values.get(key) is not None for key in COUNTS) else values

    @model_validator(mode="after")
    def _counts_make_a_fabric(self) -> "Fabric":
        keys = [key for key in COUNTS if getattr(self, key) is not None]
        if self.k and keys:
            raise wrong(keys[0], f"fabric.{keys[0]} and k = {self.k}: give counts or k, not both")

        for key in () if self.k else NEEDED:
            if getattr(self, key) is None:
                first = keys[0] if keys else "k"
                raise wrong(first, f"fabric.{first} = {getattr(self, first)} needs fabric.{key}")

        if self.pods and self.pods > 1 and not self.cores_per_agg:
            raise wrong("pods", f"fabric.pods = {self.pods} needs fabric.cores_per_agg")

        if self.plane_use and not self.planes:
            raise wrong("plane_use", "fabric.plane_use needs fabric.planes")

        try:
            refuse_unaddressable(self.tree)
        except ValueError as error:
            raise wrong(keys[0] if keys else "k", f"fabric: {error}") from None

        return self

    @model_validator(mode="after")
    def _links_have_cores(self) -> "Fabric":
        for key in () if self.k or self.cores_per_agg else OF_CORES:
            if getattr(self, key) is not None:
                raise wrong(key, f"fabric.{key} needs fabric.cores_per_agg: there are no cores")

        # A topology file names all of its tiers, and may be of one pod.
        if self.cores_per_agg and self.tree.pods_per_plane == 1 and not self.topology:
            raise wrong(
                "cores_per_agg",
                f"fabric.cores_per_agg = {self.cores_per_agg} needs fabric.pods of at least 2:"
                " within a pod no packet uses cores",
            )

        return self

    @property
    def is_drawn(self) -> bool:
        """Return whether a host's other ports carry the packets of a port that is down."""
        return self.plane_use == "draw"

    @property
    def tree(self) -> FatTree:
        """Return who is connected to whom."""
        planes = self.planes or 1
        if self.k:
            return FatTree(self.k, planes=planes)

        counts = {key: getattr(self, key) for key in COUNTS if getattr(self, key) is not None}
        return FatTree(**counts | {"pods": (self.pods or 1) * planes, "planes": planes})


SHAPE = ("pods", "edges_per_pod", "hosts_per_edge", "aggs_per_pod", "cores_per_agg")
COUNTS = (*SHAPE, "edge_agg_links", "agg_core_links")
OF_CORES = ("agg_core_links", "agg_core_gbps", "agg_core_latency_ns")
# Other counts have a default: one pod without cores, a leaf-spine.
NEEDED = ("edges_per_pod", "hosts_per_edge", "aggs_per_pod")
