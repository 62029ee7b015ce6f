"""Counters, registers and meters, by the commands of the switch's own command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ofan_p4.softswitch.control.pipeline import Pipeline
from ofan_p4.softswitch.state.meters import Rates
from ofan_p4.stf.names import find_named
from ofan_p4.stf.script import CheckFailed, ScriptError, numbers


class Arrays:
    """The cells of a pipeline's arrays, by the names of a script."""

    def __init__(self, pipeline: Pipeline) -> None:
        program = pipeline.program
        self._kinds: dict[str, tuple[Iterable[Any], Iterable[Any]]] = {
            "counter": (program.counters, pipeline.counters),
            "register": (program.registers, pipeline.registers),
            "meter": (program.meters, pipeline.meters),
        }

    def counter_read(self, line: int, arguments: tuple[str, ...]) -> None:
        """`NAME INDEX [== PACKETS [BYTES]]`: compare a counter with expected numbers, if any."""
        index, *expected = _index_and_value(line, arguments)
        cell = self.counter(line, arguments[0], index)
        if expected and expected != cell[: len(expected)]:
            raise CheckFailed(
                f"line {line}: {arguments[0]}({index}) has {cell[0]} packets "
                f"and {cell[1]} bytes, expected {expected}"
            )

    def counter_write(self, line: int, arguments: tuple[str, ...]) -> None:
        """`NAME INDEX PACKETS BYTES`."""
        index, packets, octets = numbers(line, arguments[1:4])
        cell = self.counter(line, arguments[0], index)
        cell[:] = [packets, octets]

    def register_read(self, line: int, arguments: tuple[str, ...]) -> None:
        """`NAME INDEX [== VALUE]`: compare a register with the expected value, if any."""
        index, *expected = _index_and_value(line, arguments)
        cells = self._array(line, "register", arguments[0])
        value = cells[index] if index < len(cells) else None

        if expected and expected[0] != value:
            raise CheckFailed(
                f"line {line}: {arguments[0]}[{index}] is {value}, expected {expected[0]}"
            )

    def register_write(self, line: int, arguments: tuple[str, ...]) -> None:
        """`NAME INDEX VALUE`."""
        index, value = numbers(line, arguments[1:3])
        cells = self._array(line, "register", arguments[0])
        if index >= len(cells):
            raise ScriptError(
                line, f"{arguments[0]} has no cell {index}, only 0 to {len(cells) - 1}"
            )

        cells[index] = value

    def register_reset(self, line: int, arguments: tuple[str, ...]) -> None:
        """`NAME`: all cells are 0 again."""
        cells = self._array(line, "register", arguments[0])
        cells[:] = [0] * len(cells)

    def meter_rates(self, line: int, arguments: tuple[str, ...]) -> None:
        """`NAME INDEX RATE:BURST RATE:BURST`."""
        index = numbers(line, arguments[1:2])[0]
        meter = self._cell(line, "meter", arguments[0], index)
        meter.configure(_rates(line, arguments[2:4]))

    def meter_array_rates(self, line: int, arguments: tuple[str, ...]) -> None:
        """`NAME RATE:BURST RATE:BURST`, for all cells."""
        for meter in self._array(line, "meter", arguments[0]):
            meter.configure(_rates(line, arguments[1:3]))

    def counter(self, line: int, name: str, index: int) -> Any:
        """Return a cell of a counter: packets and bytes."""
        return self._cell(line, "counter", name, index)

    def _array(self, line: int, kind: str, name: str) -> list[Any]:
        named = [
            # Direct counters and meters live in their tables, not in arrays.
            (spec.name, cells)
            for spec, cells in zip(*self._kinds[kind], strict=True)
            if not spec.is_direct
        ]
        array: list[Any] = find_named(line, kind, name, named)
        return array

    def _cell(self, line: int, kind: str, name: str, index: int) -> Any:
        array = self._array(line, kind, name)
        if not 0 <= index < len(array):
            raise ScriptError(line, f"{name} has no cell {index}, only 0 to {len(array) - 1}")

        return array[index]


def _index_and_value(line: int, arguments: tuple[str, ...]) -> list[int]:
    """Return the numbers behind an array's name: a cell's index, and expected values, if any."""
    values = numbers(line, [argument for argument in arguments[1:] if argument != "=="])
    if not values:
        raise ScriptError(line, f"which cell of {arguments[0]}?")

    return values


def _rates(line: int, arguments: tuple[str, ...]) -> Rates:
    """`RATE:BURST` twice, committed and peak; rates are in units per microsecond."""
    figures = []
    for argument in arguments:
        rate, _, burst = argument.partition(":")
        try:
            # The switch counts in units per second.
            figures += [round(float(rate) * 1e6), int(burst)]
        except ValueError:
            raise ScriptError(line, f"expected RATE:BURST, found {argument!r}") from None

    if len(figures) != 4:
        raise ScriptError(line, "expected the committed and the peak RATE:BURST")

    return Rates(*figures)


HANDLERS: dict[str, Callable[[Arrays, int, tuple[str, ...]], None]] = {
    "counter_read": Arrays.counter_read,
    "counter_write": Arrays.counter_write,
    "register_read": Arrays.register_read,
    "register_write": Arrays.register_write,
    "register_reset": Arrays.register_reset,
    "meter_set_rates": Arrays.meter_rates,
    "meter_array_set_rates": Arrays.meter_array_rates,
}
