"""The experiment file: fabric, load balancers, collective, failures, seeds.

Every number has its unit in its key; `fattree.experiment` has the tables.

An `Experiment` is the content of a TOML file; it makes one `Scenario` per load balancer and seed,
and each of the three networks can run a scenario.
"""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from fattree.errors import nearest
from fattree.experiment.base import wrong
from fattree.experiment.collective import Collective, Job
from fattree.experiment.fabric import DEFAULT_QUEUE_BYTES, Fabric
from fattree.experiment.failures import Controller, Degraded, FailureEvent, Failures, Loss, Place
from fattree.experiment.hosts import LoadBalancer, Packets, Transport, refuse_small_buffers
from fattree.experiment.marking import Marking, marking
from fattree.experiment.own import LIKE, AgentPacket, HostRule, OwnHostRule, OwnProgram
from fattree.experiment.settings import NOT_BOTH, Settings, with_files
from fattree.policies import POLICIES, Policy, slug_of
from fattree.shape.topology import FatTree, Level, Speeds
from fattree.units import PS_PER_NS, PS_PER_SECOND, PS_PER_US

__all__ = [
    "BUILT_IN",
    "NOT_BOTH",
    "AgentPacket",
    "Collective",
    "Controller",
    "Degraded",
    "Experiment",
    "Fabric",
    "FailureEvent",
    "Failures",
    "HostRule",
    "Job",
    "LoadBalancer",
    "Loss",
    "OwnHostRule",
    "OwnProgram",
    "Packets",
    "Place",
    "Scenario",
    "Settings",
    "Transport",
    "with_files",
]

# Where a load balancer marks nothing and the congestion control needs marks.
NSCC_ECN_PERCENT = 20
# DCQCN's bounds are 1 to 4 in the public simulator of HPCC; an eighth of 800 KB is as much at
# 800 Gbit/s as its publication's 5 KB at 40 Gbit/s.
DCQCN_ECN_PERCENT = 12.5
DCQCN_ECN_TIMES = 4


# `Scenario.program`: the load balancer's own P4 program.
BUILT_IN = "built-in"


class Scenario(Settings):
    """One run: one load balancer, one seed. Times that follow from it are integer picoseconds.

    `program` is for the simulator: the P4 program that its switches run, a file of the user's (with
    the groups and hosts of `policy`) or BUILT_IN, instead of kernels. With the user's `host_rule`,
    hosts label packets by that rule; all other behaviour is the policy's.
    """

    policy: str = "ofan"
    program: Annotated[str, Field(min_length=1)] | None = None
    host_rule: HostRule | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, name: str) -> str:
        slug = slug_of(name)
        if slug not in POLICIES:
            raise ValueError(
                f"no load balancer {name!r}{nearest(name, POLICIES)};"
                f" choose from {', '.join(POLICIES)}"
            )

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
        """Return the name of the user's load balancer, empty for our load balancers."""
        program = "" if self.program in (None, BUILT_IN) else Path(str(self.program)).name
        rule = self.host_rule.file if self.host_rule else ""
        return f"{program} {rule}".strip()

    @property
    def balancer(self) -> str:
        """Return the load balancer's name: the policy's slug, or the user's files."""
        return self.own_name or self.policy

    @property
    def balancer_label(self) -> str:
        """Return the load balancer's name for people."""
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
        latencies_ns = (fabric.latency_ns, fabric.edge_agg_latency_ns, fabric.agg_core_latency_ns)
        host, edge_agg, agg_core = (
            round((ns or fabric.latency_ns) * PS_PER_NS) for ns in latencies_ns
        )
        return host, edge_agg, agg_core

    @property
    def speeds(self) -> Speeds:
        """Return how fast links between switches are, hosts' links being 1."""
        host, edge_agg, agg_core = self.rates_bps
        return Speeds(Fraction(edge_agg, host), Fraction(agg_core, host))

    @property
    def data_bytes(self) -> int:
        """Return the wire size of a full data packet without gap."""
        return self.packet_bytes(self.packets.payload_bytes)

    def packet_bytes(self, payload: int) -> int:
        """Return the wire size of a data packet with so much payload, its tunnel included."""
        tunnel = self.packets.tunnel_bytes if self.scheme.outer_bytes else 0
        return payload + self.packets.header_bytes + tunnel

    @property
    def ack_bytes(self) -> int:
        """Return the wire size of an ACK without gap."""
        return self.packets.ack_bytes + (
            self.packets.tunnel_bytes if self.scheme.outer_bytes else 0
        )

    @property
    def threshold_bytes(self) -> int:
        """Return the buffer that ECN and queue bins are fractions of."""
        return self.fabric.threshold_bytes or self.fabric.queue_bytes or DEFAULT_QUEUE_BYTES

    @property
    def ecn_percent(self) -> float | None:
        """Return from which share of `threshold_bytes` on data is marked, None for never."""
        # Both slow down only where they see marks.
        defaults = {"nscc": NSCC_ECN_PERCENT, "dcqcn": DCQCN_ECN_PERCENT}
        default = defaults.get(self.transport.congestion)
        return self.load_balancer.ecn_percent or self.scheme.ecn_percent or default

    @property
    def marking(self) -> Marking | None:
        """Return which data packets are marked, by the queue on their arrival, None for none."""
        least = self.ecn_percent
        if least is None:
            return None

        is_drawn = self.transport.congestion == "dcqcn"
        by_default = min(DCQCN_ECN_TIMES * least, 100) if is_drawn else least
        full = self.load_balancer.ecn_full_percent or by_default
        return marking(self.threshold_bytes, least, full, self.load_balancer.ecn_chance)

    def link_bps(self, level: Level, share: float = 1) -> int:
        """Return the rate in bit/s of a link of a level that carries a share of it."""
        rate_bps = self.rates_bps[level]
        # A share is a decimal, exact in a fraction; a run asks for whole links mostly, and often.
        carried_bps = rate_bps if share == 1 else round(rate_bps * Fraction(str(share)))
        return max(1, carried_bps)

    def tx_ps(self, size: int, level: Level = Level.HOST, share: float = 1) -> int:
        """Return how long `size` bytes occupy a link that carries a share of its rate."""
        # Rounded up to whole ps: no link is ever faster than its rate.
        return -(-size * 8 * PS_PER_SECOND // self.link_bps(level, share))

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
    def horizon_ps(self) -> int | None:
        """Return when a run ends that is not done, None where its user has set no such time."""
        return None if self.horizon_us is None else max(1, round(self.horizon_us * PS_PER_US))

    @property
    def convergence_ps(self) -> int | None:
        """Return G, or None for never."""
        rtts = self.failures.convergence_rtt
        return None if rtts == float("inf") else round(rtts * self.zero_load_rtt_ps)

    @property
    def lags_ps(self) -> tuple[int, ...]:
        """Return the lags that switches draw from, empty where all switches change together."""
        return tuple(round(lag * self.zero_load_rtt_ps) for lag in self.controller.spread_rtt)


class Experiment(Settings):
    """A file: the shared settings, the load balancers and the seeds to run.

    A program or a host rule of the user's runs before them.
    """

    policies: tuple[str, ...] = ("ofan",)
    """The load balancers, by the names of `fattree/policies.py`; each runs with every seed."""
    program: OwnProgram | None = None
    host_rule: OwnHostRule | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """The first seed; a seed gives all load balancers the same matrix and failures."""
    seeds: Annotated[int, Field(ge=1, le=100_000)] = 1
    """The number of seeds, from the first on."""

    @field_validator("policies")
    @classmethod
    def _own_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(slug_of, names))

    @model_validator(mode="after")
    def _a_wrapped_packet_fits(self) -> "Experiment":
        wrapping = [slug for slug, row in POLICIES.items() if row.outer_bytes]
        if {*wrapping} & {*self.policies}:
            refuse_small_buffers(self.packets, self.fabric.queue_bytes, self.packets.tunnel_bytes)

        return self

    @model_validator(mode="after")
    def _last_seed_is_one(self) -> "Experiment":
        if self.seed + self.seeds > 2**63:
            raise wrong(
                "seed", f"the last seed would be {self.seed + self.seeds - 1}, above 2**63 - 1"
            )

        return self

    @property
    def runs(self) -> int:
        """Return how many scenarios there are."""
        return (len(self.policies) + (self.host_rule is not None)) * self.seeds

    def alone(self, like: str) -> "Experiment":
        """Return the experiment with one load balancer: `like`, or its host rule with `like`."""
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
                yield _valid(policy=self.host_rule.like, host_rule=rule, seed=seed, **shared)

            for policy in self.policies:
                yield _valid(policy=policy, seed=seed, **shared)


def _valid(**values: Any) -> Scenario:
    """Return a scenario of an experiment; raises ValidationError, which knows the key."""
    return Scenario.model_validate(values)
