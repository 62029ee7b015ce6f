"""Plans of a fabric and of a failed link: CPU time, memory, and a switch's entries."""

import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from controller.fabric_controller import FabricController, LinkChange, Step
from emulation.programs.switch_program import SwitchProgram, built_in, size_of
from fattree.experiment.model import Fabric, Scenario
from fattree.routes.forwarding import Forwarding
from fattree.routes.groups import NONE

Answer = TypeVar("Answer")
Row = dict[str, Any]
MB = 1 << 10


def scenario(k: int, **settings: Any) -> Scenario:
    """Return Ofan's scenario on a fabric."""
    return Scenario(policy="ofan", fabric=Fabric(k=k), **settings)


def program_for(chosen: Scenario) -> SwitchProgram:
    """Return the program for switches of this size."""
    return built_in(chosen.scheme.program, size_of(chosen.tree))


def timed(
    action: Callable[[], Answer], clock: Callable[[], float] = time.process_time
) -> tuple[float, Answer]:
    """Return how long an action took, and its answer."""
    started = clock()
    answer = action()
    return clock() - started, answer


def walk(steps: Iterable[Step]) -> int:
    """Make every change, as sessions do when they send it; return how many there were."""
    return sum(1 for step in steps for _ in step.changes)


def peak_mb() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // MB


def failures_of(chosen: Scenario) -> dict[str, int]:
    """Return one link of each kind: the last ones, which no code treats specially."""
    return {"edge": chosen.tree.links // 2 - 1, "core": chosen.tree.links - 1}


def planning(k: int) -> Row:
    """Plan a fabric, fail a link of each kind, mend it, and count everything."""
    chosen = scenario(k)
    controller = FabricController(chosen, program_for(chosen).pipeline)
    plan_s, steps = timed(controller.start)
    made_s, entries = timed(lambda: walk(steps))
    row: Row = {
        "k": k,
        "switches": chosen.tree.switches,
        "plan_cpu_s": plan_s,
        "entries": entries,
        "made_cpu_s": made_s,
    }

    row |= {"plan_mb": peak_mb(), **shape(controller.forwarding())}
    steps = []
    for kind, link in failures_of(chosen).items():
        row |= {f"{kind}_{name}": value for name, value in replanning(controller, link).items()}

    return row | {"peak_mb": peak_mb()}


def replanning(controller: FabricController, link: int) -> Row:
    """Fail a link and mend it again."""
    replan_s, steps = timed(lambda: controller.on_event(0, LinkChange(down=frozenset({link}))))
    made_s, updates = timed(lambda: walk(steps))
    per_switch: Counter[int] = Counter()

    for step in steps:
        per_switch[step.switch] += len(step.changes)

    longest = int(np.diff(controller.forwarding().schedule_offset).max())
    repair_s, _ = timed(lambda: controller.on_event(0, LinkChange(up=frozenset({link}))))
    return {
        "replan_cpu_s": replan_s,
        "made_cpu_s": made_s,
        "updates": updates,
        "switches_told": len(per_switch),
        "most_updates": max(per_switch.values()),
        "median_updates": int(np.median(list(per_switch.values()))),
        "longest_schedule": longest,
        "repair_cpu_s": repair_s,
    }


def shape(state: Forwarding) -> Row:
    """Count the entries of an edge, of an agg, and of an edge without shared schedules."""
    edges = state.tree.edges
    lengths = np.diff(state.schedule_offset)
    edge = slice(*state.first_schedule[:2].tolist())
    groups = state.group_schedule[slice(*state.first_group[:2].tolist())]
    used = groups[state.edge_group[0][state.edge_group[0] != NONE]]
    row: Row = {
        f"{name}_pointers": int((groups != NONE).sum()) for name, groups in of_tiers(state).items()
    }
    row |= {"edge_schedules": int((lengths[edge] > 0).sum()), "edge_rows": int(lengths[edge].sum())}
    row["edge_rows_unshared"] = int(lengths[edge][used].sum())
    agg = slice(*state.first_schedule[edges : edges + 2].tolist())

    return row | {
        "agg_rows": int(lengths[agg].sum()),
        "saving": row["edge_rows_unshared"] / row["edge_rows"],
    }


def of_tiers(state: Forwarding) -> dict[str, Any]:
    """Return the groups of the first edge's and the first agg's destinations.

    Each has a pointer per packet class.
    """
    return {"edge": state.edge_group[0], "agg": state.agg_group[0]}
