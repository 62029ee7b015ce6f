"""Settings that all runs of an experiment share: its tables, without load balancers and seeds."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import Field, model_validator

from fattree.experiment.base import LATEST_NS, Section, wrong
from fattree.experiment.collective import Collective, Job
from fattree.experiment.fabric import Fabric
from fattree.experiment.failures import Controller, Failures
from fattree.experiment.hosts import LoadBalancer, Packets, Transport, refuse_small_buffers
from fattree.experiment.own import AgentPacket, Macros

NOT_BOTH = "give a [collective] or [[jobs]], not both"


class Settings(Section):
    """Settings of experiments and of scenarios."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)] = (
        "experiment"
    )
    """The name of results, stores and pictures."""
    label: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    """Your own line of text about the run: a column of results."""
    fabric: Fabric = Fabric()
    packets: Packets = Packets()
    load_balancer: LoadBalancer = LoadBalancer()
    collective: Collective = Collective()
    jobs: Annotated[tuple[Job, ...], Field(max_length=1_000)] = ()
    transport: Transport = Transport()
    failures: Failures = Failures()
    controller: Controller = Controller()
    agent_packet: AgentPacket | None = None
    defines: Annotated[Macros, Field(json_schema_extra={"default": {}})] = ()
    """Macros for your own programs, as with `-D NAME=VALUE`: `GAP = 5` in a table `[defines]`,
    `"defines.GAP" = [5, 10]` in a sweep.
    """
    horizon_us: Annotated[float, Field(gt=0, le=LATEST_NS / 1000)] | None = None
    """The time after its start at which an unfinished run is stopped, in its own time (on `mininet`
    in real time). By default a run goes on while it makes progress, and stops when no more progress
    is possible.
    """

    @model_validator(mode="after")
    def _packets_can_ask_for_acks(self) -> "Settings":
        if self.transport.packets_per_ack > 1 and self.agent_packet:
            raise wrong(
                ("transport", "packets_per_ack"),
                "transport.packets_per_ack needs a bit in packets that asks for an ACK;"
                " your own packets (agent_packet) have none",
            )

        return self

    @model_validator(mode="after")
    def _what_is_trimmed_is_full_and_long(self) -> "Settings":
        if not self.transport.trimming:
            if self.transport.acks_first:
                raise wrong(
                    ("transport", "acks_first"),
                    "transport.acks_first needs transport.trimming:"
                    " only then ports have a lane that goes before the queue",
                )

            return self

        packets = self.packets
        if not self.fabric.queue_bytes:
            raise wrong(
                ("transport", "trimming"),
                "transport.trimming needs a buffer limit: fabric.queue_bytes = 0 means no limit",
            )
        if packets.ack_bytes >= packets.payload_bytes + packets.header_bytes:
            raise wrong(
                ("transport", "trimming"),
                "transport.trimming cuts packets to packets.ack_bytes ="
                f" {packets.ack_bytes}, which must be less than the size of a data packet",
            )
        if self.agent_packet:
            raise wrong(
                ("transport", "trimming"),
                "transport.trimming needs NACKs, which your own packets (agent_packet) do not have",
            )

        return self

    @model_validator(mode="after")
    def _jobs_follow_earlier_ones(self) -> "Settings":
        if self.jobs and self.collective != Collective():
            raise wrong("collective", NOT_BOTH)

        names = [job.name for job in self.jobs]
        for number, job in enumerate(self.jobs):
            if job.name in names[:number]:
                raise wrong(("jobs", number, "name"), f"jobs: two jobs have the name {job.name}")
            if job.after is not None and job.after not in names[:number]:
                raise wrong(
                    ("jobs", number, "after"),
                    f"jobs: {job.name} is after {job.after!r}, which is no earlier job",
                )

        return self

    @model_validator(mode="after")
    def _a_packet_fits(self) -> "Settings":
        refuse_small_buffers(self.packets, self.fabric.queue_bytes, tunnel_bytes=0)
        return self

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """Return the collective, or those of all jobs."""
        return tuple(job.collective for job in self.jobs) or (self.collective,)

    @property
    def is_graph(self) -> bool:
        """Return whether the traffic of hosts is a graph of transfers (`demand.workloads`)."""
        return bool(self.jobs) or self.collective.is_graph

    @property
    def is_shared_actively(self) -> bool:
        """Return whether the flows that are ready share a host's rate, instead of fixed shares.

        The paper's matrices have equal, fixed shares. Graphs, jobs, steps and traces do not, nor do
        pairs and connection matrices: their flows may start at different times or share a receiver.
        """
        sharing = self.transport.sharing
        is_listed = self.collective.matrix in ("pairs", "file")
        return self.is_graph or is_listed if sharing is None else sharing == "active"

    @property
    def tells_shares(self) -> bool:
        """Return whether receivers tell senders how many flows share the receiver's link."""
        if not self.is_shared_actively:
            return False

        # With pauses (RoCE) no NIC's receiver announces shares.
        told = self.transport.receiver_share
        is_free = self.transport.congestion == "fixed" and self.fabric.flow_control == "none"
        return is_free if told is None else told

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files of the collectives, each once."""
        return tuple(
            dict.fromkeys(collective.file for collective in self.collectives if collective.file)
        )

    @property
    def matrix(self) -> str:
        """Return the names of the collectives' matrices, each once."""
        return "+".join(dict.fromkeys(collective.matrix for collective in self.collectives))


Whole = TypeVar("Whole", bound=Settings)


def with_files(settings: Whole, renamed: Mapping[str, str]) -> Whole:
    """Return settings with new paths of the collectives' files."""

    def moved(collective: Collective) -> Collective:
        file = collective.file
        return collective.model_copy(update={"file": renamed[file]}) if file else collective

    jobs = tuple(
        job.model_copy(update={"collective": moved(job.collective)}) for job in settings.jobs
    )
    return settings.model_copy(update={"collective": moved(settings.collective), "jobs": jobs})
