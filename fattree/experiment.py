"""The experiment file: fabric, load balancers, collective, failures, seeds.

Every number has its unit in its key.

An `Experiment` is what a TOML file says; it unfolds into one `Scenario` per load balancer and seed,
which each of the three networks runs as it is.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from fattree.errors import ExperimentError
from fattree.policies import POLICIES, Chooser, Policy
from fattree.text_file import read_text
from fattree.topo_file import fabric_of
from fattree.topology import FatTree, Level, Speeds, refuse_unaddressable
from fattree.units import PS_PER_NS, PS_PER_SECOND

# The paper's setting: 200 data packets of 4 KB or so.
DEFAULT_QUEUE_BYTES = 800_000

# Where a load balancer marks nothing and the congestion control needs marks.
NSCC_ECN_PERCENT = 20

# Far beyond any experiment: against a slip of a unit.
MOST_BYTES = 2**40
MOST_RTTS = 10_000
MOST_OWN_CHARACTERS = 100_000
LATEST_NS = 10**14

# In recent flaps: above the one a link is left out, below the other it is used again
# (`controller.damping`).
DAMPING_SUPPRESS = 3.0
DAMPING_REUSE = 1.0

# Host DR's hosts choose the way, so it has no groups that another program could take.
LIKE = tuple(slug for slug, row in POLICIES.items() if row.chooser is not Chooser.WAYPOINT)
Matrix = Literal[
    "permutation",
    "inter_pod_permutation",
    "all_to_all",
    "ring",
    "hierarchical_ring",
    "fsdp",
    "pairs",
    "file",
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "workload",
]
Algorithm = Literal["ring", "double_tree", "recursive", "hierarchical", "direct"]
# What each matrix heeds beside `matrix`; any other key would be set without effect.
SHARD_KEYS = ("model", "parameters", "layers", "hidden_size")
ON_HOSTS = ("hosts", "placement")
BY_ALGORITHM = ("message_bytes", "algorithm", "chunks", *ON_HOSTS)
MATRIX_KEYS: dict[Matrix, tuple[str, ...]] = {
    "permutation": ("message_bytes",),
    "inter_pod_permutation": ("message_bytes",),
    "all_to_all": BY_ALGORITHM,
    "ring": ("message_bytes", "steps"),
    "hierarchical_ring": ("message_bytes", "servers_per_ring", "steps"),
    "fsdp": (*SHARD_KEYS, "servers_per_ring", "steps"),
    "pairs": ("message_bytes", "pairs"),
    "file": ("file", "start_unit"),
    "all_reduce": BY_ALGORITHM,
    "reduce_scatter": BY_ALGORITHM,
    "all_gather": BY_ALGORITHM,
    "broadcast": BY_ALGORITHM,
    "workload": ("file", *ON_HOSTS),
}
# Those that are graphs of dependent transfers (`fattree.workloads`), and may be jobs.
GRAPHS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "workload")
WITHOUT_EFFECT = "without_effect"
Detection = Literal["announced", "netlink", "probe"]
Congestion = Literal["fixed", "swift", "lazy_swift", "mswift", "nscc"]


class Section(BaseModel):
    """A frozen table of the file; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Rate = Annotated[float, Field(ge=0.001, le=10_000)]
Latency = Annotated[float, Field(ge=0.001, le=10**9)]
Count = Annotated[int, Field(ge=1, le=255)]


class Fabric(Section):
    """The fabric's counts (`fattree.topology`), and its links. `queue_bytes` 0 means unlimited.

    `k` is short for the k-ary fat-tree, and 0 beside counts; `topology` is a file of htsim's that
    says counts, rates and latencies.
    Thresholds are fractions of `threshold_bytes`.
    """

    k: Annotated[int, Field(ge=0, le=128, multiple_of=2)] = 8
    topology: str | None = None
    pods: Count | None = None
    edges_per_pod: Count | None = None
    hosts_per_edge: Count | None = None
    aggs_per_pod: Count | None = None
    cores_per_agg: Annotated[int, Field(ge=0, le=255)] | None = None
    edge_agg_links: Count | None = None
    agg_core_links: Count | None = None
    planes: Annotated[int, Field(ge=2, le=255)] | None = None
    plane_use: Literal["spray", "keep"] | None = None
    rate_gbps: Rate = 800
    latency_ns: Latency = 500
    # Those of links between switches, where they are others than the hosts'.
    edge_agg_gbps: Rate | None = None
    agg_core_gbps: Rate | None = None
    edge_agg_latency_ns: Latency | None = None
    agg_core_latency_ns: Latency | None = None
    queue_bytes: Annotated[int, Field(ge=0, le=MOST_BYTES)] = DEFAULT_QUEUE_BYTES
    threshold_bytes: Annotated[int, Field(gt=0, le=MOST_BYTES)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_k_beside_counts(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values

        # What is written down has the counts, too: it must not depend on files that may change.
        file = values.get("topology")
        if isinstance(file, str) and values.get("edges_per_pod") is None:
            read = fabric_of(read_text(file, ExperimentError), file)
            again = next((key for key in ("k", *read) if values.get(key) is not None), None)
            if again:
                raise ValueError(
                    f"{Path(file).name} says all of it but buffers: fabric.{again} is too much"
                )

            values = {**values, **read, "topology": Path(file).name}

        if "k" in values:
            return values

        return {**values, "k": 0} if any(values.get(key) is not None for key in COUNTS) else values

    @model_validator(mode="after")
    def _counts_make_a_fabric(self) -> "Fabric":
        given = [key for key in COUNTS if getattr(self, key) is not None]
        if self.k and given:
            raise _wrong(given[0], f"fabric.{given[0]} is for other fabrics than k = {self.k}")

        for key in () if self.k else NEEDED:
            if getattr(self, key) is None:
                first = given[0] if given else "k"
                raise _wrong(first, f"fabric.{first} = {getattr(self, first)} needs fabric.{key}")

        if self.pods and self.pods > 1 and not self.cores_per_agg:
            raise _wrong("pods", f"fabric.pods = {self.pods} needs fabric.cores_per_agg")

        if self.planes and (self.k or self.pods not in (None, 1) or self.cores_per_agg):
            raise _wrong("planes", "fabric.planes are leaf-spines: without k, pods and cores")
        if self.plane_use and not self.planes:
            raise _wrong("plane_use", "fabric.plane_use needs fabric.planes")

        try:
            refuse_unaddressable(self.tree)
        except ValueError as error:
            raise _wrong(given[0] if given else "k", f"fabric: {error}") from None

        return self

    @property
    def tree(self) -> FatTree:
        """Return who is connected to whom."""
        if self.k:
            return FatTree(self.k)

        counts = {key: getattr(self, key) for key in COUNTS if getattr(self, key) is not None}
        if self.planes:
            counts |= {"pods": self.planes, "planes": self.planes}

        return FatTree(**{"pods": 1, **counts})


SHAPE = ("pods", "edges_per_pod", "hosts_per_edge", "aggs_per_pod", "cores_per_agg")
COUNTS = (*SHAPE, "edge_agg_links", "agg_core_links")
# The others have a default: one pod without cores, a leaf-spine.
NEEDED = ("edges_per_pod", "hosts_per_edge", "aggs_per_pod")


def _wrong(key: str, problem: str) -> PydanticCustomError:
    """Return the error of a key that does not go with the others of its table."""
    return PydanticCustomError(WITHOUT_EFFECT, "{problem}", {"key": key, "problem": problem})


class Packets(Section):
    """What a packet of each class occupies on the wire."""

    # Below 256 bytes switches would take data for ACKs (design, decision 2). The headers are our
    # packets' 58 bytes and Ethernet's FCS.
    payload_bytes: Annotated[int, Field(ge=256, le=65_000)] = 4096
    header_bytes: Annotated[int, Field(ge=62, le=1_000)] = 62
    ack_bytes: Annotated[int, Field(ge=1, le=65_000)] = 64
    gap_bytes: Annotated[int, Field(ge=0, le=1_000)] = 20
    tunnel_bytes: Annotated[int, Field(ge=0, le=1_000)] = 0


class LoadBalancer(Section):
    """Options of the schemes; which one runs is `Scenario.policy`."""

    # Simple RR's: the paper's text in "Ofan" has one pointer for each next-hop group, while its
    # theory and figures (perfect uplinks, linear queues) are those of one class by itself.
    rr_pointer: Literal["per_class", "shared"] = "per_class"
    # The paper's text in "Ofan" gives each pointer an order of its own, its appendix F each pod.
    schedule_orders: Literal["per_pod", "per_pointer"] = "per_pod"
    edge_pointers: Literal["pod", "edge", "host"] = "edge"
    agg_pointers: Literal["pod", "edge", "host"] = "pod"
    queue_staleness_ns: Annotated[float, Field(ge=0, le=10**9)] = 0
    bins_percent: tuple[float, float, float] = (5, 10, 20)
    ecn_percent: Annotated[float, Field(gt=0, le=100)] | None = None
    # The last ACKs' marks are bits of one int64.
    plb_acks: Annotated[int, Field(ge=1, le=60)] = 10
    plb_percent: Annotated[int, Field(ge=1, le=100)] = 40
    plb_gaps: Annotated[int, Field(ge=1, le=10**6)] = 10
    # As in REPS's public implementations; at this scale a flow that freezes stays so to its end.
    freeze_us: Annotated[float, Field(ge=0, le=10**9)] = 10_000
    reps_explore_packets: Annotated[int, Field(ge=0, le=10**6)] = 16

    @field_validator("edge_pointers")
    @classmethod
    def _one_order_per_pointer(cls, level: str, others: ValidationInfo) -> str:
        if level == "pod" and others.data.get("schedule_orders") == "per_pointer":
            raise ValueError(
                '"pod" needs schedule_orders = "per_pod": '
                "a pod's edges share a pointer, so they share an order"
            )

        return level


class Collective(Section):
    """Who sends how much to whom (`fattree.traffic`).

    `steps` of a ring: by default a whole exchange, one step for fsdp.
    """

    matrix: Matrix = "permutation"
    message_bytes: Annotated[int, Field(gt=0, le=MOST_BYTES)] = 1 << 20
    pairs: tuple[tuple[int, int], ...] = ()
    file: str | None = None
    start_unit: Literal["ps", "us"] = "ps"
    steps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    servers_per_ring: Annotated[int, Field(ge=2, le=10**9)] | None = None
    model: Literal["llama-7b", "llama-70b", "llama-405b"] | None = None
    hidden_size: Annotated[int, Field(gt=0, le=10**6)] | None = None
    layers: Annotated[int, Field(gt=0, le=10**6)] | None = None
    parameters: Annotated[int, Field(gt=0, le=10**15)] | None = None
    algorithm: Algorithm | None = None
    chunks: Annotated[int, Field(ge=1, le=10**6)] = 1
    hosts: Annotated[str, Field(max_length=10_000)] = ""
    placement: Literal["packed", "random", "rail"] = "packed"

    @property
    def is_graph(self) -> bool:
        """Return whether it is a graph of transfers; a plain all-to-all is not."""
        if self.matrix == "all_to_all":
            return bool(self.algorithm or self.chunks > 1 or self.hosts) or (
                self.placement != "packed"
            )

        return self.matrix in GRAPHS

    @property
    def unheeded(self) -> tuple[str, ...]:
        """Return the keys that were given, and that the matrix makes nothing of."""
        heeded = ("matrix", *MATRIX_KEYS[self.matrix])
        return tuple(
            key
            for key in type(self).model_fields
            if key in self.model_fields_set and key not in heeded
        )

    @model_validator(mode="after")
    def _no_key_without_effect(self) -> "Collective":
        # Defaults pass: whoever copies a collective gives every key.
        for key in self.unheeded:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise _wrong(key, no_such_key(self, key))

        return self


def no_such_key(collective: Collective, key: str) -> str:
    """Return what is wrong with a key that a matrix does not heed, and what is right."""
    others = [matrix for matrix, keys in MATRIX_KEYS.items() if key in keys]
    of = others[0] if len(others) == 1 else f"{', '.join(others[:-1])} and {others[-1]}"
    return (
        f"collective.{key} says nothing to matrix {collective.matrix}, which takes "
        f"{', '.join(MATRIX_KEYS[collective.matrix])} ({key} is for {of})"
    )


class Job(Section):
    """One of several collectives: it starts at a time, or after another job.

    After another one, each host begins when its own part of that is complete.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
    collective: Collective
    start_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] = 0
    after: str | None = None

    @model_validator(mode="after")
    def _is_one_of_a_job(self) -> "Job":
        if self.collective.matrix not in GRAPHS:
            raise ValueError(
                f"a job's matrix is one of {', '.join(GRAPHS)}, not {self.collective.matrix}"
            )

        if self.after is not None and self.start_ns:
            raise ValueError("give start_ns or after, not both")

        return self


class Transport(Section):
    """Loss recovery, congestion control and pacing."""

    recovery: Literal["erasure", "sack"] = "erasure"
    congestion: Congestion = "fixed"
    # A bitmap has 1,024 bits, so the highest number is at most 1,023 above the lowest missing one.
    sack_threshold: Annotated[int, Field(ge=1, le=1023)] = 32
    # No packet times out sooner, in zero-load RTTs: with one instead of three, rttvar shrinks below
    # what a longer queue adds, and REPS freezes without any failure.
    timer_floor_rtt: Annotated[float, Field(ge=0, le=MOST_RTTS)] = 3
    pacing_jitter: Annotated[float, Field(ge=0, le=1)] = 0
    random_phases: bool = True
    rate_limit: Annotated[float, Field(gt=0, le=1)] | None = None


class Place(Section):
    """A link between switches, a host's link, or a whole switch: all its links."""

    link: str | None = None
    host: str | None = None
    switch: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "Place":
        if sum(name is not None for name in (self.link, self.host, self.switch)) != 1:
            raise ValueError("name one of link, host, switch")

        return self

    @property
    def name(self) -> str:
        """Return what it is called."""
        return self.link or self.host or self.switch or ""


class FailureEvent(Place):
    """Links that fail and perhaps come back, at given times; `times` over, every `every_ns`."""

    down_ns: Annotated[float, Field(ge=0, le=LATEST_NS)]
    up_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] | None = None
    times: Annotated[int, Field(ge=1, le=10_000)] = 1
    every_ns: Annotated[float, Field(gt=0, le=LATEST_NS)] | None = None

    @model_validator(mode="after")
    def _flaps(self) -> "FailureEvent":
        if (self.times > 1) != (self.every_ns is not None):
            raise ValueError("times and every_ns go together: so often, and how long after another")

        if self.every_ns is None:
            return self

        if self.up_ns is None or not 0 < self.up_ns - self.down_ns < self.every_ns:
            raise ValueError("between two failures the link comes up: up_ns - down_ns < every_ns")

        return self


class Loss(Place):
    """Links that lose this share of their packets, in either direction, at random."""

    share: Annotated[float, Field(gt=0, le=1)]


class Failures(Section):
    """Failed links: drawn at a rate, named, or both; and links that lose packets all the time.

    `convergence_rtt` is G in zero-load RTTs (`inf`: routes never change).
    """

    rate: Annotated[float, Field(ge=0, le=1)] = 0
    at_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] = 0
    events: tuple[FailureEvent, ...] = ()
    losses: tuple[Loss, ...] = ()
    convergence_rtt: Annotated[float, Field(ge=0, allow_inf_nan=True)] = 0
    local_repair: bool = False

    @field_validator("convergence_rtt")
    @classmethod
    def _finite_or_never(cls, rtts: float) -> float:
        if not (rtts <= MOST_RTTS or rtts == float("inf")):
            raise ValueError(f"must be from 0 to {MOST_RTTS:,}, or inf for never")

        return rtts


class Controller(Section):
    """How the controller learns of failures, and how it treats links that come and go.

    G (`failures.convergence_rtt`) runs from the moment at which it learns of a change: with
    `announced` that is the change itself.
    """

    detection: Detection = "announced"
    probe_interval_us: Annotated[float, Field(ge=0.001, le=10**9)] | None = None
    probe_misses: Annotated[int, Field(ge=1, le=1_000)] | None = None
    damping_half_life_us: Annotated[float, Field(ge=0.001, le=10**12)] | None = None
    damping_suppress: Annotated[float, Field(gt=0, le=1_000)] | None = None
    damping_reuse: Annotated[float, Field(gt=0, le=1_000)] | None = None

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> "Controller":
        if self.detection != "probe" and (self.probe_interval_us, self.probe_misses) != (
            None,
            None,
        ):
            raise ValueError(
                "probe_interval_us and probe_misses need "
                f'detection = "probe", not "{self.detection}"'
            )

        if self.damping_half_life_us is None and (self.damping_suppress, self.damping_reuse) != (
            None,
            None,
        ):
            raise ValueError("damping_suppress and damping_reuse need damping_half_life_us")

        suppress = self.damping_suppress or DAMPING_SUPPRESS
        reuse = self.damping_reuse or DAMPING_REUSE
        if reuse >= suppress:
            raise ValueError(
                f"damping_reuse = {reuse:g} must be below damping_suppress = {suppress:g}"
            )

        return self


class OwnProgram(Section):
    """A P4 program of the user's, and the load balancer whose groups and hosts it gets."""

    file: Annotated[str, Field(min_length=1)]
    like: str = "simple_rr"

    @field_validator("like")
    @classmethod
    def _has_groups(cls, slug: str) -> str:
        if slug not in LIKE:
            raise ValueError(f"must be one of {', '.join(LIKE)}")

        return slug


class OwnText(Section):
    """A Python file of the user's: `text` is all of it, and `file` is what it is called.

    Without the text, it is read from the file.
    """

    file: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(max_length=MOST_OWN_CHARACTERS)]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("file"), str):
            return values

        # What is written down must not depend on files that may change, or that others cannot read.
        name = Path(values["file"]).name
        text = values.get("text") or read_text(values["file"], ExperimentError)
        return {**values, "file": name, "text": text}


class HostRule(OwnText):
    """A host rule of the user's."""


class AgentPacket(OwnText):
    """What packets of the user's look like: functions that build them (`hostagent.own_packet`)."""


class OwnHostRule(HostRule):
    """The same among an experiment's load balancers: what else hosts and switches do is `like`."""

    like: str = "host_pkt_ar"

    @field_validator("like")
    @classmethod
    def _has_labels(cls, slug: str) -> str:
        if slug not in LIKE:
            raise ValueError(f"must be one of {', '.join(LIKE)}")

        return slug


class Settings(Section):
    """What experiments and scenarios share."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)] = (
        "experiment"
    )
    fabric: Fabric = Fabric()
    packets: Packets = Packets()
    load_balancer: LoadBalancer = LoadBalancer()
    collective: Collective = Collective()
    jobs: Annotated[tuple[Job, ...], Field(max_length=1_000)] = ()
    transport: Transport = Transport()
    failures: Failures = Failures()
    controller: Controller = Controller()
    agent_packet: AgentPacket | None = None

    @model_validator(mode="after")
    def _jobs_follow_earlier_ones(self) -> "Settings":
        if self.jobs and self.collective != Collective():
            raise ValueError("give a [collective] or [[jobs]], not both")

        names = [job.name for job in self.jobs]
        for number, job in enumerate(self.jobs):
            if job.name in names[:number]:
                raise ValueError(f"jobs: there are two of the name {job.name}")
            if job.after is not None and job.after not in names[:number]:
                raise ValueError(
                    f"jobs: {job.name} is after {job.after!r}, which is no job before it"
                )

        return self

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """Return the collective, or those of all jobs."""
        return tuple(job.collective for job in self.jobs) or (self.collective,)

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that say what is sent, each once."""
        return tuple(dict.fromkeys(one.file for one in self.collectives if one.file))

    @property
    def matrix(self) -> str:
        """Return what the collectives are called, each kind once."""
        return "+".join(dict.fromkeys(one.matrix for one in self.collectives))


Whole = TypeVar("Whole", bound=Settings)


def with_files(settings: Whole, renamed: Mapping[str, str]) -> Whole:
    """Return settings whose collectives have their files elsewhere."""

    def moved(collective: Collective) -> Collective:
        file = collective.file
        return collective.model_copy(update={"file": renamed[file]}) if file else collective

    jobs = tuple(
        job.model_copy(update={"collective": moved(job.collective)}) for job in settings.jobs
    )
    return settings.model_copy(update={"collective": moved(settings.collective), "jobs": jobs})


# `Scenario.program`: the load balancer's own P4 program.
BUILT_IN = "built-in"


class Scenario(Settings):
    """One run: one load balancer, one seed. Times that follow from it are integer picoseconds.

    `program` is for the simulator: the P4 program that its switches run, a file of the user's (with
    the groups and hosts of `policy`) or BUILT_IN, in place of kernels. With a `host_rule` of the
    user's, hosts label packets by that; all else is the policy's.
    """

    policy: str = "ofan"
    program: Annotated[str, Field(min_length=1)] | None = None
    host_rule: HostRule | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, slug: str) -> str:
        if slug not in POLICIES:
            raise ValueError(f"no load balancer {slug!r}; choose from {', '.join(POLICIES)}")

        return slug

    @model_validator(mode="after")
    def _has_groups(self) -> "Scenario":
        if self.program not in (None, BUILT_IN) and self.policy not in LIKE:
            raise ValueError(f"a program can be like one of {', '.join(LIKE)}, not {self.policy}")

        return self

    @property
    def tree(self) -> FatTree:
        """Return who is connected to whom."""
        return self.fabric.tree

    @property
    def scheme(self) -> Policy:
        """Return the load balancer's row of the table."""
        return POLICIES[self.policy]

    @property
    def own_name(self) -> str:
        """Return what the user calls a load balancer of theirs, empty for one of ours."""
        program = "" if self.program in (None, BUILT_IN) else Path(str(self.program)).name
        rule = self.host_rule.file if self.host_rule else ""
        return f"{program} {rule}".strip()

    @property
    def balancer(self) -> str:
        """Return what balances the load: the policy's slug, or the user's files."""
        return self.own_name or self.policy

    @property
    def balancer_label(self) -> str:
        """Return the same as people read it."""
        form = " (P4)" if self.program == BUILT_IN else ""
        return self.own_name or f"{self.scheme.label}{form}"

    @property
    def rate_bps(self) -> int:
        """Return the rate of hosts' links in bit/s."""
        return self.rates_bps[Level.HOST]

    @property
    def rates_bps(self) -> tuple[int, int, int]:
        """Return the rate of the links of each level in bit/s."""
        fabric = self.fabric
        rates = (fabric.rate_gbps, fabric.edge_agg_gbps, fabric.agg_core_gbps)
        host, edge_agg, agg_core = (round((rate or fabric.rate_gbps) * 10**9) for rate in rates)
        return host, edge_agg, agg_core

    @property
    def latency_ps(self) -> int:
        """Return the latency of hosts' links."""
        return self.latencies_ps[Level.HOST]

    @property
    def latencies_ps(self) -> tuple[int, int, int]:
        """Return the latency of the links of each level."""
        fabric = self.fabric
        given = (fabric.latency_ns, fabric.edge_agg_latency_ns, fabric.agg_core_latency_ns)
        host, edge_agg, agg_core = (round((ns or fabric.latency_ns) * PS_PER_NS) for ns in given)
        return host, edge_agg, agg_core

    @property
    def speeds(self) -> Speeds:
        """Return how fast links between switches are, hosts' links being 1."""
        host, edge_agg, agg_core = self.rates_bps
        return Speeds(Fraction(edge_agg, host), Fraction(agg_core, host))

    @property
    def data_bytes(self) -> int:
        """Return the wire size of a data packet without gap, with the tunnel where there is one."""
        tunnel = self.packets.tunnel_bytes if self.policy == "host_dr" else 0
        return self.packets.payload_bytes + self.packets.header_bytes + tunnel

    @property
    def ack_bytes(self) -> int:
        """Return the wire size of an ACK without gap."""
        return self.packets.ack_bytes + (
            self.packets.tunnel_bytes if self.policy == "host_dr" else 0
        )

    @property
    def threshold_bytes(self) -> int:
        """Return the buffer that ECN and queue bins are fractions of."""
        return self.fabric.threshold_bytes or self.fabric.queue_bytes or DEFAULT_QUEUE_BYTES

    @property
    def ecn_percent(self) -> float | None:
        """Return from which share of `threshold_bytes` on data is marked, None for never."""
        # NSCC shrinks its window only where it sees marks.
        default = NSCC_ECN_PERCENT if self.transport.congestion == "nscc" else None
        return self.load_balancer.ecn_percent or self.scheme.ecn_percent or default

    def tx_ps(self, size: int, level: Level = Level.HOST) -> int:
        """Return how long `size` bytes occupy a link."""
        # Rounded up to whole ps: no link is ever faster than its rate.
        return -(-size * 8 * PS_PER_SECOND // self.rates_bps[level])

    def path_ps(self, hops: int, size: int) -> int:
        """Return how long a packet of `size` bytes travels an empty path of so many links."""
        levels = self.tree.levels(hops)
        return sum(self.tx_ps(size, level) + self.latencies_ps[level] for level in levels)

    @property
    def slot_ps(self) -> int:
        """Return the time a data packet and its gap hold a link."""
        return self.tx_ps(self.data_bytes + self.packets.gap_bytes)

    @property
    def ack_slot_ps(self) -> int:
        """Return the time an ACK and its gap hold a link."""
        return self.tx_ps(self.ack_bytes + self.packets.gap_bytes)

    @property
    def zero_load_rtt_ps(self) -> int:
        """Return 2 T_p + H (T_d + T_a) of the longest path, 6.253 us by default (decision 4)."""
        hops = self.tree.most_hops
        return self.path_ps(hops, self.data_bytes) + self.path_ps(hops, self.ack_bytes)

    @property
    def bdp_packets(self) -> int:
        """Return the data packets in one zero-load RTT at line rate."""
        return -(-self.zero_load_rtt_ps // self.slot_ps)

    @property
    def convergence_ps(self) -> int | None:
        """Return G, or None for never."""
        rtts = self.failures.convergence_rtt
        return None if rtts == float("inf") else round(rtts * self.zero_load_rtt_ps)


class Experiment(Settings):
    """A file: the shared settings, the load balancers and the seeds to run.

    A program or a host rule of the user's runs before them.
    """

    policies: tuple[str, ...] = ("ofan",)
    program: OwnProgram | None = None
    host_rule: OwnHostRule | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    seeds: Annotated[int, Field(ge=1, le=100_000)] = 1

    @property
    def runs(self) -> int:
        """Return how many scenarios there are."""
        return (len(self.policies) + (self.host_rule is not None)) * self.seeds

    def alone(self, like: str) -> "Experiment":
        """Return the experiment with one load balancer, `like` one of ours but for a host rule."""
        if self.host_rule is None:
            return self.model_copy(update={"policies": (like,)})

        rule = self.host_rule.model_copy(update={"like": like})
        return self.model_copy(update={"policies": (), "host_rule": rule})

    def without_rule(self) -> "Experiment":
        """Return the experiment with the load balancers of ours alone."""
        return self.model_copy(update={"host_rule": None})

    def scenarios(self) -> Iterator[Scenario]:
        """Yield one scenario per seed and load balancer.

        A seed fixes matrix and failures for all schemes alike.
        """
        shared = {name: getattr(self, name) for name in Settings.model_fields}
        for seed in range(self.seed, self.seed + self.seeds):
            if self.host_rule:
                rule = HostRule(file=self.host_rule.file, text=self.host_rule.text)
                yield Scenario(policy=self.host_rule.like, host_rule=rule, seed=seed, **shared)

            for policy in self.policies:
                yield Scenario(policy=policy, seed=seed, **shared)
