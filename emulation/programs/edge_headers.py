"""A program's header between edges: the scenarios in which packets with it cannot run."""

from emulation.errors import UnsupportedError
from emulation.programs.switch_program import SwitchProgram
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused
from fattree.routes.buffers import refuse_small_rooms


def refuse_edge_header(scenario: Scenario, program: SwitchProgram) -> None:
    """Raise UnsupportedError where packets with a program's header between edges cannot run."""
    more_bytes = program.edge_header_bytes
    if not more_bytes:
        return

    if is_paused(scenario):
        if program.probe_interval_us:
            raise UnsupportedError(
                'fabric.flow_control = "pfc" does not go with PROBE_INTERVAL_US: probes would be'
                " paused, and tell of no path"
            )

        refuse_small_rooms(scenario, more_bytes)

    queue_bytes = scenario.fabric.queue_bytes
    longest = max(scenario.data_bytes, scenario.ack_bytes) + more_bytes
    if 0 < queue_bytes < longest:
        raise UnsupportedError(
            f"fabric.queue_bytes = {queue_bytes}: a packet has {longest} bytes between switches,"
            f" {more_bytes} of them the program's EDGE_HEADER"
        )
