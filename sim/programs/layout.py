"""The bytes of packets that a program needs, and the arrays with a run's frames."""

from typing import NamedTuple

import numpy as np

from fattree.experiment.model import Scenario
from fattree.shape.addressing import agg_waypoint, core_waypoint, host_ip
from hostagent.forms import BITS, Beginnings, Forms, Run
from hostagent.transports.state import Recovery
from sim.kernels.blocks import MOST_FREE, QUEUED_BYTES
from sim.kernels.desk import Program
from sim.kernels.frames import WRITTEN, Frames
from sim.kernels.octets import IPV4
from sim.kernels.records import Records
from sim.kernels.state import Int64, World

# Up to here programs know our packets; bytes behind it they may have put there themselves.
KNOWN = 42
NOWHERE = Run(0, 0, 0, 0, 0)
# The names of `sim.kernels.frames`' fields, in its order; those that are read alone stand last.
NAMES = ("label", "psn", "msn", "marked", "number", "destination_ip")


class Layout(NamedTuple):
    """The bytes of every packet that a program needs.

    It looks at `frame_bytes` of a frame, which may grow by `growth` at a switch, and remembers
    `state_bytes` between ingress and egress. Headers of its own that it may put into a packet have
    `added` bytes, and the header that all packets have between edges `edge_header_bytes`.
    """

    frame_bytes: int
    state_bytes: int
    growth: int
    added: int
    edge_header_bytes: int = 0


def kept_bytes(scenario: Scenario, layout: Layout, forms: Forms) -> int:
    """Return how many bytes of every frame are kept: the parts that programs or hosts read."""
    # Another header in front where hosts write it. Bytes that a program reads beyond the headers
    # of all frames may be headers of its own; hosts' bytes then stand behind them.
    headers = max(map(forms.end, range(2))) + scenario.scheme.outer_bytes
    own_bytes = min(layout.added, max(0, layout.frame_bytes - KNOWN))
    return -(-max(layout.frame_bytes, headers + own_bytes) // 8) * 8


def frames_of(
    world: World,
    scenario: Scenario,
    layout: Layout,
    templates: Beginnings,
    sample_ps: int,
    program: Program,
    threads: int,
) -> Frames:
    """Return the frames of a run's packets, with room for a block for every slot of its pool."""
    tree = scenario.tree
    forms = templates.forms
    kept = templates.frames.shape[2]
    state_at = kept + QUEUED_BYTES
    own_bytes = state_at + -(-layout.state_bytes // 8) * 8 if program.passes == 0 else kept
    receivers = len(world.flows.table) if world.rules.recovery == Recovery.SACK else 0
    frames = Frames(
        words=np.zeros(0, dtype=np.int64),
        octets=np.zeros(0, dtype=np.uint8),
        address=0,
        packets=world.pool.packets,
        given=np.zeros(1, dtype=np.int64),
        spare=1 + threads * MOST_FREE,
        late=np.zeros(0, dtype=np.int64),
        late_address=0,
        late_words=program.late_words,
        # Whole cache lines, so that blocks share none.
        stride=-(-own_bytes // 64) * 64,
        kept=kept,
        hidden=max(form.hidden for form in forms),
        # Bytes that programs change in place are among them.
        host_words=_host_words(templates, layout),
        state_at=state_at,
        templates=np.ascontiguousarray(templates.frames).view(np.int64).ravel(),
        data_length=len(forms.data.template),
        ack_length=len(forms.ack.template),
        ip_at=forms.data.ip_at,
        tunnel=0 if forms.data.is_tunnel else IPV4,
        **_tables(forms, kept),
        agg_ips=np.array(
            [
                agg_waypoint(tree, pod, uplink)
                for pod in range(tree.pods)
                for uplink in range(tree.edge_uplinks)
            ],
            dtype=np.int64,
        ),
        core_ips=np.array(
            [
                core_waypoint(tree, plane, uplink, last)
                for plane in range(tree.planes)
                for uplink in range(tree.edge_uplinks)
                for last in range(tree.agg_uplinks)
            ],
            dtype=np.int64,
        ),
        host_ips=host_ip(tree, np.arange(tree.hosts)),
        lowest=np.zeros(receivers, dtype=np.int32),
        highest=np.full(receivers, -1, dtype=np.int32),
        cut=forms.payload,
        sample_ps=sample_ps,
    )
    return with_blocks(frames, world.pool.packets)


def _host_words(templates: Beginnings, layout: Layout) -> int:
    """Return the number of words after which hosts write zeros, and programs in place nothing."""
    written = templates.frames.any(axis=(0, 1)).nonzero()[0]
    ends = [*map(templates.forms.end, range(2)), layout.frame_bytes]
    last = max(*ends, int(written.max(initial=0)) + 1)
    return min(-(-last // 8), int(templates.frames.shape[2]) // 8)


def _tables(forms: Forms, kept: int) -> dict[str, Int64]:
    """Return the forms' part of `Frames`."""
    written = [form.runs[name] for form in forms for name in NAMES[:WRITTEN]]
    # An empty run for a field that a kind of packet lacks: data have no mark of their own.
    read = [
        next((run for run in form.runs[name] if run.mask == (1 << BITS[name]) - 1), NOWHERE)
        for form in forms
        for name in NAMES
    ]
    shape = np.zeros((2, len(forms), kept), dtype=np.uint8)
    for kind, form in enumerate(forms):
        for byte, mask, value in form.signature:
            shape[:, kind, byte] = mask, value

    tables: dict[str, object] = {
        "shape_masks": shape[0].view(np.int64).ravel(),
        "shape_values": shape[1].view(np.int64).ravel(),
        "writes": [run for runs in written for run in runs],
        "first_writes": np.cumsum([0, *map(len, written)]),
        "reads": read,
        "signature": [row for form in forms for row in form.signature],
        "first_signature": np.cumsum([0, *(len(form.signature) for form in forms)]),
        "shortest": [form.shortest for form in forms],
        "is_udp": [form.is_udp for form in forms],
        "changes_ipv4": [form.changes_ipv4 for form in forms],
        "grown": forms.ack.lengths,
        "shrunk": forms.data.lengths,
    }
    return {name: np.array(table, dtype=np.int64) for name, table in tables.items()}


def with_blocks(frames: Frames, packets: Records) -> Frames:
    """Return frames with as many blocks as there are packets, which begin as the old ones."""
    # To a whole cache line, and with threads' own blocks. Untouched memory only costs addresses.
    blocks = len(packets) + frames.spare
    memory = np.empty(blocks * frames.stride // 8 + 8, dtype=np.int64)
    words = memory[-memory.ctypes.data % 64 // 8 :][: blocks * frames.stride // 8]
    words[: len(frames.words)] = frames.words
    late = np.empty(len(packets) * frames.late_words, dtype=np.int64)
    late[: len(frames.late)] = frames.late
    return frames._replace(
        words=words,
        octets=words.view(np.uint8),
        address=words.ctypes.data,
        packets=packets,
        late=late,
        late_address=late.ctypes.data,
    )
