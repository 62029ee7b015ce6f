"""`[collective]` and `[[jobs]]`: who sends how much to whom, and when."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fattree.experiment.base import LATEST_NS, MOST_BYTES, Section, wrong

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
    "incast",
    "workload",
]
Algorithm = Literal["ring", "double_tree", "recursive", "hierarchical", "direct"]
# The keys that each matrix heeds beside `matrix`; any other key would be set without effect.
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
    "incast": BY_ALGORITHM,
    "workload": ("file", *ON_HOSTS),
}
# Those that are graphs of dependent transfers (`demand.workloads`), and may be jobs.
GRAPHS = (
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "incast",
    "all_to_all",
    "workload",
)
# Of a job also single flows, which are a matrix of the paper's where they are alone.
OF_JOBS = (*GRAPHS, "pairs")
# Nothing is passed on: each sends all that it has.
DIRECT = ("all_to_all", "incast")


class Collective(Section):
    """The senders, receivers and sizes of flows (`fattree.demand.traffic`).

    `steps` of a ring: by default a whole exchange, one step for fsdp.
    """

    matrix: Matrix = "permutation"
    """Who sends to whom; the keys below are for some of them (table at the end)."""
    message_bytes: Annotated[int, Field(gt=0, le=MOST_BYTES)] = 1 << 20
    """The bytes of each flow; in a ring, the bytes that each host passes on in a step."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Who sends to whom: a [source, destination] for each flow, hosts by their numbers (above), as
    in `[[0, 5], [1, 5]]`.
    """
    file: str | None = None
    """A connection matrix in htsim's format, or a workload (`docs/workloads.md`); relative to the
    experiment's folder.
    """
    start_unit: Literal["ps", "us"] = "ps"
    """The unit of `start` in a connection matrix; it differs between simulators."""
    steps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Steps of a ring; by default the whole exchange, for fsdp one."""
    servers_per_ring: Annotated[int, Field(ge=2, le=10**9)] | None = None
    """How many servers (edge switches) make a ring; by default all."""
    model: Literal["llama-7b", "llama-70b", "llama-405b"] | None = None
    """fsdp: the model; hosts gather one of its layers."""
    hidden_size: Annotated[int, Field(gt=0, le=10**6)] | None = None
    """fsdp: the model's hidden size, instead of its name."""
    layers: Annotated[int, Field(gt=0, le=10**6)] | None = None
    """fsdp: the number of layers that share `parameters`."""
    parameters: Annotated[int, Field(gt=0, le=10**15)] | None = None
    """fsdp: the number of the model's parameters, instead of its name."""
    algorithm: Algorithm | None = None
    """The algorithm of a collective (`docs/workloads.md`); by default `ring`, for an all-to-all and
    an incast `direct`.
    """
    chunks: Annotated[int, Field(ge=1, le=10**6)] = 1
    """The number of parts of each transfer, which are sent one after the other."""
    hosts: Annotated[str, Field(max_length=10_000)] = ""
    """The hosts that take part, by name or range: `"pod0, edge1_*, h2_0_1-3"`; by default all. The
    first host broadcasts; in an incast all other hosts send to the first.
    """
    placement: Literal["packed", "random", "rail"] = "packed"
    """The order of ranks on hosts: in order, at random, or by rail (GPUs of the same number of all
    servers side by side; with planes, in the plane of this number).
    """

    @property
    def usual_algorithm(self) -> Algorithm:
        """Return the algorithm by default."""
        return "direct" if self.matrix in DIRECT else "ring"

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
        """Return the given keys that have no effect on the matrix."""
        heeded = ("matrix", *MATRIX_KEYS[self.matrix])
        return tuple(
            key
            for key in type(self).model_fields
            if key in self.model_fields_set and key not in heeded
        )

    @model_validator(mode="after")
    def _no_key_without_effect(self) -> "Collective":
        # Defaults pass: a copy of a collective gives every key.
        for key in self.unheeded:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise wrong(key, no_such_key(self, key))

        return self


def no_such_key(collective: Collective, key: str) -> str:
    """Return the error of a key without effect on a matrix, with the keys that it takes."""
    matrices = [matrix for matrix, keys in MATRIX_KEYS.items() if key in keys]
    of = matrices[0] if len(matrices) == 1 else f"{', '.join(matrices[:-1])} and {matrices[-1]}"
    return (
        f"collective.{key} has no effect on matrix {collective.matrix}, which takes "
        f"{', '.join(MATRIX_KEYS[collective.matrix])} ({key} is for {of})"
    )


class Job(Section):
    """One of several collectives: it starts at a time, or after another job.

    After another job, each host begins when its own part of that job is complete.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
    """The job's name in `after`, results and keys: `--set jobs.NAME.collective.message_bytes=1MiB`.
    """
    collective: Collective
    """The job's collective, with the keys of `[collective]`."""
    start_ns: Annotated[float, Field(ge=0, le=LATEST_NS)] = 0
    """The time at which the job begins."""
    after: str | None = None
    """An earlier job to wait for: a host begins when its own part of that job is complete."""

    @model_validator(mode="after")
    def _is_one_of_a_job(self) -> "Job":
        if self.collective.matrix not in OF_JOBS:
            raise wrong(
                ("collective", "matrix"),
                f"a job's matrix is one of {', '.join(OF_JOBS)}, not {self.collective.matrix}",
            )

        if self.after is not None and self.start_ns:
            raise wrong("start_ns", "give start_ns or after, not both")

        return self
