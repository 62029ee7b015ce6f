"""A compiled program as the simulator runs it: its functions, and a context for every switch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from emulation.errors import UnsupportedError
from emulation.programs.switch_program import SwitchProgram
from emulation.virtual.added_headers import added_bytes
from fattree.draws import Stream, component
from fattree.experiment.model import Scenario
from hostagent.own_packet import scenario_packets
from ofan_p4.softswitch.codegen.program import Array
from ofan_p4.softswitch.control.pipeline import Pipeline
from ofan_p4.softswitch.native import context, contract
from ofan_p4.softswitch.native.engine import NativeProgram, native_program
from ofan_p4.softswitch.native.passing import passing
from sim.kernels.desk import Program
from sim.programs.callbacks import COMPONENT, DRAW_WORDS, SEED, draw_function, forget_function
from sim.programs.layout import Layout

# The register in which programs count the bytes that wait at each port (include/queue_stats.p4).
QUEUE_LENGTHS = "queue_bytes"
CELL_BITS = 32
# How `sim.programs` calls machine code (docs/decisions/machine-code-contract.md).
CONTRACT = 2
CLONES = "clone packets (which go nowhere: no switch has a clone session)"
# BMv2's names of primitives that copy a packet, or send it round again.
REQUESTS = {
    "clone_ingress_pkt_to_egress": CLONES,
    "clone_egress_pkt_to_egress": CLONES,
    "generate_digest": "send digests (which have no reader)",
    "resubmit": "resubmit packets",
    "recirculate": "recirculate packets",
}


class NativeMachine:
    """The program of all switches' pipelines, in machine code.

    Packets have `edge_header_bytes` more between switches.
    Raises UnsupportedError without machine code, or where the program reads more than the
    simulator's packets have.
    """

    def __init__(
        self, scenario: Scenario, pipelines: Sequence[Pipeline], edge_header_bytes: int = 0
    ) -> None:
        native = pipelines[0].native
        headers = headers_of(scenario, edge_header_bytes)
        reason = why_not(native or pipelines[0].reason, headers)
        if reason:
            raise UnsupportedError(reason)

        self.error: BaseException | None = None
        assert native is not None and native.frame_bytes is not None
        self._pipelines = pipelines
        added = added_bytes(native.program)
        self.layout = Layout(
            native.frame_bytes,
            native.state_bytes,
            native.out_growth,
            added=native.frame_bytes if added is None else added,
            edge_header_bytes=edge_header_bytes,
        )

        # Machine code draws without asking Python: the words of every switch's random source.
        self._draws = np.zeros((len(pipelines), DRAW_WORDS), dtype=np.int64)
        self._draws[:, SEED] = scenario.seed
        for number, pipeline in enumerate(pipelines):
            self._draws[number, COMPONENT] = component(Stream.SWITCH, number)
            memory = pipeline.memory
            assert memory is not None
            memory.context[context.DRAW] = draw_function().address
            memory.context[context.DRAW_STATE] = self._draws[number].ctypes.data

        queues = self._queues()
        sample = bytes(scenario_packets(scenario).forms.data.template)
        # It must live as long as its functions are called.
        self._passing = passing(native, pipelines[0].source, sample)
        calls = self._passing
        self.program = Program(
            native.ingress_address,
            native.egress_address,
            calls.pass_address if calls else 0,
            calls.leave_address if calls else 0,
            calls.state_bytes // 8 if calls else 0,
            forget_function().address if queues is not None else 0,
            np.array(
                [pipeline.memory.address for pipeline in pipelines if pipeline.memory],
                dtype=np.int64,
            ),
            np.zeros(len(pipelines), dtype=np.int64) if queues is None else queues,
        )

    def settle(self) -> None:
        """Let packets see all that the control plane has changed."""
        for pipeline in self._pipelines:
            if pipeline.memory is not None:
                pipeline.memory.settle()

    def _queues(self) -> NDArray[np.int64] | None:
        """Return where each switch's queue lengths are; None where the program has none."""
        arrays = self._pipelines[0].program.registers
        for index, array in enumerate(arrays):
            if array.name == QUEUE_LENGTHS:
                return np.array(
                    [
                        pipeline.memory.registers[index].memory.ctypes.data
                        for pipeline in self._pipelines
                        if pipeline.memory
                    ],
                    dtype=np.int64,
                )

        return None


def refuse_few_cells(scenario: Scenario, registers: Sequence[Array]) -> None:
    """Raise UnsupportedError where a program's queue lengths lack a cell for a port of a switch."""
    # Dropped packets leave the cell of their port. Ports are numbered from 1.
    least = scenario.tree.most_ports + 1
    for array in registers:
        if array.name == QUEUE_LENGTHS and array.size < least:
            raise UnsupportedError(
                f"the program's register {QUEUE_LENGTHS} needs {least} cells, one for each number"
                f" of a port, and has {array.size}: the network counts dropped packets there"
            )


def headers_of(scenario: Scenario, edge_header_bytes: int) -> int:
    """Return how many bytes of headers all frames have that a program may look at."""
    # Where hosts or edges put another header in front, programs look that much further.
    outer_bytes = scenario.scheme.outer_bytes + edge_header_bytes
    return scenario_packets(scenario).forms.headers + outer_bytes


def only_python(scenario: Scenario, program: SwitchProgram) -> str:
    """Return in a line why a program runs as Python; nothing where machine code can run it.

    Raises UnsupportedError with P4 tools of another version.
    """
    if contract.VERSION != CONTRACT:
        raise UnsupportedError(
            f"ofan-p4 makes machine code by contract {contract.VERSION}, and the simulator calls"
            f" by contract {CONTRACT}: install the ofan-p4 that this ofan asks for"
        )

    headers = headers_of(scenario, program.edge_header_bytes)
    return why_not(native_program(program.bmv2_json), headers)


def why_not(native: NativeProgram | str, headers: int) -> str:
    """Return why machine code cannot run a program, in a line; nothing where it can.

    A program without machine code is the reason for that. All frames have `headers` bytes.
    """
    if isinstance(native, str):
        return native
    if native.frame_bytes is None or native.frame_bytes > headers:
        return (
            f"the program may look at more than the first {headers} bytes of a frame, where"
            " bitmaps, payloads and ICRCs begin, which machine code does not write"
        )

    asked = {
        REQUESTS[primitive["op"]]
        for action in native.program.actions.values()
        for primitive in action.primitives
        if primitive["op"] in REQUESTS
    }
    if asked:
        return f"the program may {' and '.join(sorted(asked))}"

    for array in native.program.registers:
        if array.name == QUEUE_LENGTHS and array.bits != CELL_BITS:
            return f"the program's register {QUEUE_LENGTHS} has {array.bits} bits, not {CELL_BITS}"

    return ""
