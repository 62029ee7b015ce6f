"""Read registers and counters out of the switches of a virtual network."""

from collections.abc import Iterator, Sequence

from emulation.outcomes.outcome import ArrayState
from emulation.virtual.control import Control
from fattree.shape.addressing import switch_name
from ofan_p4.softswitch.control.pipeline import Pipeline


def state_of(network: Control) -> tuple[ArrayState, ...]:
    """Return all registers and counters of a network's switches that hold something."""
    return tuple(
        ArrayState(switch_name(network.scenario.tree, number), name, cells)
        for number, switch in enumerate(network.switches)
        if switch.pipeline
        for name, cells in _arrays(switch.pipeline)
        if cells
    )


def _arrays(pipeline: Pipeline) -> Iterator[tuple[str, tuple[tuple[int, tuple[int, ...]], ...]]]:
    program = pipeline.program
    for register, cells in zip(program.registers, pipeline.registers, strict=True):
        yield register.name, _set_cells([(int(cell),) for cell in cells])

    # The last counter is none of the program's (softswitch.control.strays).
    for counter, cells in zip(program.counters[:-1], pipeline.counters, strict=False):
        yield counter.name, _set_cells([(int(cell[0]), int(cell[1])) for cell in cells])


def _set_cells(cells: Sequence[tuple[int, ...]]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple((number, cell) for number, cell in enumerate(cells) if any(cell))
