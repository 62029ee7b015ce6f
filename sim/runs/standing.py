"""The progress of a run: of flows that have ended, and of flows with a sender."""

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows
from fattree.routes import standstill
from fattree.routes.standstill import Senders, Standing
from hostagent.rules import tries
from hostagent.transports.state import NEVER
from sim.kernels.records import ENDED, Records
from sim.kernels.state import CLOCK, NO_SENDER, World
from sim.kernels.state import Flows as Columns

Int64 = NDArray[np.int64]


def counted(flows: Columns) -> Records:
    """Return the fields of `ENDED` of each flow as of now, whether it has ended or not."""
    is_open = _is_open(flows)
    if not is_open.any():
        return flows.ended

    now: Records = flows.ended.copy()
    senders = flows.senders[flows.sender_of[is_open]]
    for name in ENDED.names or ():
        now[name][is_open] = senders[name]

    return now


def acked(flows: Columns) -> Int64:
    """Return how many of each flow's packets are acknowledged, at most all."""
    packets = flows.table.packets
    acked = np.where(flows.ended.done_ps != NEVER, packets, 0)
    is_open = _is_open(flows)
    of_senders = flows.senders.acked[flows.sender_of[is_open]]
    acked[is_open] = np.minimum(of_senders, packets[is_open])
    return acked


def _is_open(flows: Columns) -> NDArray[np.bool_]:
    """Return whether each flow has begun to send, and not ended."""
    has_begun: NDArray[np.bool_] = flows.started_ps != NEVER
    has_begun &= (flows.ended.done_ps == NEVER) & (flows.sender_of != NO_SENDER)
    return has_begun


def progress(flows: Flows, world: World) -> float:
    """Return the share of all packets that are acknowledged."""
    return float(acked(world.flows).sum() / flows.packets.sum())


def standing(world: World, is_changing: bool = False) -> Standing:
    """Return how far a run is; `is_changing` where routes or links are about to change."""
    flows = world.flows
    now_ps = int(world.counters[CLOCK])
    hosts = world.hosts
    heard_ps = np.zeros(len(flows.started_ps), dtype=np.int64)
    is_open = _is_open(flows)
    heard_ps[is_open] = flows.senders.heard_ps[flows.sender_of[is_open]]
    columns = Senders(
        started_ps=flows.started_ps,
        done_ps=flows.ended.done_ps,
        heard_ps=heard_ps,
        acked=acked(flows),
        tries=tries(counted(flows), world.rules.recovery),
        computes=flows.table.packets == 0,
        held_ps=np.where(hosts.until_ps > now_ps, hosts.closed_ps, NEVER)[flows.table.source],
    )
    return standstill.standing(now_ps, columns, is_changing)
