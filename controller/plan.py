"""What every switch should hold, from `fabric.forwarding`: routes, schedules, and the settings of its program.

A plan speaks of schedules by their place in the forwarding arrays; `reconcile` decides which ids they get on the switch.
A program gets entries for the tables that it has, so a program of the user's needs no change here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

import numpy as np

from controller.entries import Call, Entries, Key, Prefix
from controller.errors import PlanError
from controller.pipeline import Pipeline
from fabric.addressing import NETWORK, host_ip, switch_ip, switch_name
from fabric.experiment import Scenario
from fabric.forwarding import NONE, Forwarding, hash_multiplier
from fabric.policies import RESHUFFLE_WRAPS, Chooser
from fabric.topology import FatTree, Tier

HOST, SWITCH_NETWORK, POD = 32, 24, 16
SCHEMES = {Chooser.RANDOM: 0, Chooser.SHORTEST: 1, Chooser.BINNED: 2}

Block: TypeAlias = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Where a northbound prefix leads: a pair of pointers, the block of schedules that they walk, and their starts."""

    number: int
    block: int
    data_start: int
    ack_start: int


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """What one switch should hold.

    `ports` and `groups` are its routes south and north; a block is what one group walks: one sequence of uplinks, or 16 of
    one length for Switch Pkt; `settings` are all other entries.
    """

    ports: Mapping[Prefix, int]
    groups: Mapping[Prefix, Group]
    blocks: tuple[Block, ...]
    settings: Entries


class Planner:
    """Makes the plans of a scenario's switches for one program; raises PlanError where the program is too small."""

    def __init__(self, scenario: Scenario, pipeline: Pipeline) -> None:
        self.scenario = scenario
        self.tree = scenario.tree
        self._tables = frozenset(pipeline.tables)
        self._pipeline = pipeline
        self._max_uplinks = pipeline.max_uplinks
        if self._max_uplinks is not None and self._max_uplinks < self.tree.half:
            raise PlanError(
                f"the program compares {self._max_uplinks} uplinks, k = {self.tree.k} has {self.tree.half}:"
                f" compile it with -D MAX_UPLINKS={1 << (self.tree.half - 1).bit_length()}"
            )

    def plan(self, forwarding: Forwarding, switch: int) -> SwitchPlan:
        """Return what a switch should hold under `forwarding`."""
        tree, policy = self.tree, self.scenario.scheme
        ports = dict(_southbound(tree, switch))
        if policy.chooser is Chooser.WAYPOINT:
            ports.update(_ways_to_waypoints(tree, switch))
            return SwitchPlan(ports, {}, (), self._settings(switch))
        if tree.tier(switch) is Tier.CORE:
            return SwitchPlan(ports, {}, (), self._settings(switch))
        groups = dict(_groups(forwarding, switch))
        return SwitchPlan(ports, groups, _blocks(forwarding, switch), self._settings(switch))

    def entries(self, switch: int, plan: SwitchPlan, ids: Sequence[int]) -> dict[tuple[str, Key], Call]:
        """Return a plan's table entries; `ids[block]` is the id of the block's first schedule."""
        entries: dict[tuple[str, Key], Call] = {}
        for block, first in zip(plan.blocks, ids, strict=True):
            for order, uplinks in enumerate(block):
                entries.update(self._schedule(first + order, uplinks))
        for prefix, port in plan.ports.items():
            entries["routes", (prefix,)] = "to_port", (port,)
        for prefix, group in plan.groups.items():
            length = len(plan.blocks[group.block][0])
            arguments = group.number, ids[group.block], length, group.data_start, group.ack_start
            entries["routes", (prefix,)] = "to_group", arguments
        entries.update(plan.settings)
        self._check(switch, plan, entries)
        return entries

    def _schedule(self, schedule: int, uplinks: bytes) -> Iterator[tuple[tuple[str, Key], Call]]:
        first = self.tree.uplink_port(0)
        if "schedule" in self._tables:
            for slot, uplink in enumerate(uplinks):
                yield ("schedule", (schedule, slot)), ("take_port", (first + uplink,))
        if self._max_uplinks is not None:
            weights = np.bincount(np.frombuffer(uplinks, dtype=np.uint8), minlength=self._max_uplinks)
            if self.scenario.scheme.chooser is Chooser.ROTATION_SHORTEST_START:
                weights = np.minimum(weights, 1)
            yield ("uplinks_of", (schedule,)), ("weigh", (first, *weights.tolist()))

    def _settings(self, switch: int) -> dict[tuple[str, Key], Call]:
        scheme = self.scenario.scheme
        wanted: dict[tuple[str, Key], Call] = {
            ("ecn", ()): ("mark_above", (ecn_threshold(self.scenario),)),
            ("hashing", ()): ("multiply_by", (hash_multiplier(self.scenario.seed, switch),)),
            ("orders", ()): ("reshuffle_after", (RESHUFFLE_WRAPS if scheme.chooser is Chooser.RESHUFFLED else 0,)),
            ("quanta", ()): ("set_quanta", (SCHEMES.get(scheme.chooser, 0), *bin_thresholds(self.scenario))),
        }
        if scheme.chooser is Chooser.WAYPOINT and self.tree.tier(switch) is not Tier.EDGE:
            wanted["waypoint", (switch_ip(self.tree, switch),)] = "unwrap", ()
        return {place: call for place, call in wanted.items() if place[0] in self._tables}

    def _check(self, switch: int, plan: SwitchPlan, entries: Entries) -> None:
        name = switch_name(self.tree, switch)
        self._pipeline.check_sizes(name, entries)
        cells = self._pipeline.registers.get("pointers")
        highest = max((group.number for group in plan.groups.values()), default=0)
        if cells is not None and 2 * highest + 1 >= cells.size:
            raise PlanError(f"{name}: register pointers has {cells.size} cells, group {highest} needs two of its own")


def ecn_threshold(scenario: Scenario) -> int:
    """Return the bytes above which data is marked, 0 for never."""
    percent = scenario.load_balancer.ecn_percent or scenario.scheme.ecn_percent
    return 0 if percent is None else floor(_share(scenario, percent))


def bin_thresholds(scenario: Scenario) -> tuple[int, ...]:
    """Return the bytes at which the second, third and fourth bin begin."""
    return tuple(ceil(_share(scenario, percent)) for percent in scenario.load_balancer.bins_percent)


def _share(scenario: Scenario, percent: float) -> Fraction:
    return scenario.threshold_bytes * Fraction(str(percent)) / 100


def _southbound(tree: FatTree, switch: int) -> Iterator[tuple[Prefix, int]]:
    pod, _ = tree.position(switch)
    match tree.tier(switch):
        case Tier.EDGE:
            for index in range(tree.half):
                yield (host_ip(tree, switch * tree.half + index), HOST), index + 1
        case Tier.AGG:
            for edge in range(tree.half):
                yield edge_prefix(tree, tree.edge(pod, edge)), edge + 1
        case Tier.CORE:
            for far in range(tree.k):
                yield pod_prefix(far), far + 1


def _ways_to_waypoints(tree: FatTree, switch: int) -> Iterator[tuple[Prefix, int]]:
    """Yield the routes of packets that a host has wrapped: up to an agg of the pod, or through it to a core."""
    major, minor = tree.position(switch)
    match tree.tier(switch):
        case Tier.EDGE:
            for agg in range(tree.half):
                core = switch_ip(tree, tree.core(agg, 0))
                yield (core & ~0xFF, SWITCH_NETWORK), tree.uplink_port(agg)
                yield (switch_ip(tree, tree.agg(major, agg)), HOST), tree.uplink_port(agg)
        case Tier.AGG:
            for index in range(tree.half):
                yield (switch_ip(tree, tree.core(minor, index)), HOST), tree.uplink_port(index)
        case Tier.CORE:
            return


def _groups(forwarding: Forwarding, switch: int) -> Iterator[tuple[Prefix, Group]]:
    """Yield the groups of an edge's destination edges, or of an agg's destination pods."""
    tree = forwarding.tree
    is_edge = switch < tree.edges
    local = forwarding.edge_group[switch] if is_edge else forwarding.agg_group[switch - tree.edges]
    first = int(forwarding.first_group[switch])
    for destination, number in enumerate(local.tolist()):
        if number == NONE:
            continue
        data_start, ack_start = forwarding.group_start[first + number].tolist()
        block = int(forwarding.group_schedule[first + number]) // forwarding.orders
        prefix = edge_prefix(tree, destination) if is_edge else pod_prefix(destination)
        yield prefix, Group(number, block, data_start, ack_start)


def _blocks(forwarding: Forwarding, switch: int) -> tuple[Block, ...]:
    first, last = forwarding.first_schedule[switch : switch + 2].tolist()
    schedules = [forwarding.schedule(switch, index).tobytes() for index in range(last - first)]
    orders = forwarding.orders
    return tuple(tuple(schedules[start : start + orders]) for start in range(0, len(schedules), orders))


def edge_prefix(tree: FatTree, edge: int) -> Prefix:
    """Return the /24 of an edge's hosts."""
    return host_ip(tree, edge * tree.half) & ~0xFF, SWITCH_NETWORK


def pod_prefix(pod: int) -> Prefix:
    """Return the /16 of a pod."""
    return (NETWORK << 24) | (pod << 16), POD
