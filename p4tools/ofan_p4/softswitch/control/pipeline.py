"""A loaded program: its compiled functions and everything at run time that they touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Literal, TypeAlias

from ofan_p4.softswitch.base import arithmetic, hashes
from ofan_p4.softswitch.base.crcs import CustomCrc
from ofan_p4.softswitch.base.errors import PipelineError, corruption_is_reported
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.assembly import Assembly, assemble
from ofan_p4.softswitch.codegen.loading import load
from ofan_p4.softswitch.codegen.program import Program
from ofan_p4.softswitch.control.constentries import install_constants
from ofan_p4.softswitch.control.trace import Walk
from ofan_p4.softswitch.native.engine import NativeFunctions, NativeProgram, native_program
from ofan_p4.softswitch.native.memory import Memory
from ofan_p4.softswitch.state.meters import Meter
from ofan_p4.softswitch.state.profiles import ActionProfile
from ofan_p4.softswitch.state.tables import PythonIndex, Table
from ofan_p4.softswitch.state.valuesets import ValueSetState

Random = Callable[[int, int], int]
# The engine of a program: machine code if it can run the program, or the named engine.
Engine: TypeAlias = Literal["auto", "native", "python"]
DROP_PORT = 511
# A program cannot reach anything else: its JSON comes from any client that may set the pipeline.
BUILTINS = {"len": len, "min": min, "max": max, "int": int, "bool": bool, "range": range}


# A fabric is many switches with the same program, and nothing in it changes at run time.
@lru_cache(maxsize=16)
def _translate(source: bytes, is_traced: bool) -> tuple[Program, Assembly, CodeType]:
    """Load a program and generate its code, once for all switches that run it."""
    program = load(source)
    with corruption_is_reported():
        assembly = assemble(program, is_traced)
        return program, assembly, compile(assembly.source, "<pipeline>", "exec")


class Pipeline:
    """One BMv2 JSON, ready to process packets.

    `random(low, high)` draws an integer, both ends included; `is_up(port)` gives selectors the
    members that are alive, `has_port(port)` which ports exist; `drop_port` is the egress_spec that
    means drop. With a `walk`, every step of every packet is reported to it, by a second form of the
    generated code; without a `walk`, tracing costs nothing.
    """

    def __init__(
        self,
        source: bytes,
        random: Random,
        is_up: Callable[[int], bool] = lambda _port: True,
        drop_port: int = DROP_PORT,
        walk: Walk | None = None,
        has_port: Callable[[int], bool] = lambda _port: True,
        engine: Engine = "auto",
    ) -> None:
        self.source = source
        self._walk = walk
        self._is_up = is_up
        self._has_port = has_port
        self.native: NativeProgram | None = None
        self.memory: Memory | None = None
        self.functions: NativeFunctions | None = None
        self.reason = ""

        with corruption_is_reported():
            self._choose(engine)
            self._build(random, is_up, drop_port)

    def _choose(self, engine: Engine) -> None:
        """Take machine code where that is asked for and possible; else say why not."""
        if self._walk is not None:
            native: NativeProgram | str = "only the Python engine traces packets"
        elif engine == "python":
            native = "asked for"
        else:
            native = native_program(self.source)

        if isinstance(native, NativeProgram):
            self.native = native
        elif engine == "native":
            raise PipelineError(f"--engine native: {native}")
        else:
            self.reason = native

    def _build(self, random: Random, is_up: Callable[[int], bool], drop_port: int) -> None:
        if self.native is not None:
            self.program = self.native.program
            self.memory = Memory(
                self.program,
                self.native.places,
                drop_port,
                is_up=is_up,
                has_port=self._has_port,
            )
        else:
            self.program, self._assembly, self._code = _translate(
                self.source, self._walk is not None
            )

        specs = self.program.tables()
        if self.memory is not None:
            self.registers: Sequence[Any] = self.memory.registers
            self.counters: Sequence[Any] = self.memory.counters
            self.meters: Sequence[Sequence[Meter]] = self.memory.meters
            self.custom_crcs: Sequence[CustomCrc] = self.memory.custom_crcs
            self.profiles: Sequence[ActionProfile] = self.memory.profiles
            self.value_sets: Sequence[ValueSetState] = self.memory.value_sets
            self.tables = [
                Table(spec, index) for spec, index in zip(specs, self.memory.indexes, strict=True)
            ]
        else:
            self.registers = [[0] * array.size for array in self.program.registers]
            self.counters = [[[0, 0] for _ in range(array.size)] for array in self.program.counters]
            self.meters = [
                [Meter(array.kind == "bytes") for _ in range(array.size)]
                for array in self.program.meters
            ]

            self.profiles = [
                ActionProfile(profile.size, is_up, self._has_port)
                for profile in self.program.profiles()
            ]

            self.custom_crcs = [CustomCrc(item.algorithm) for item in self.program.custom_crcs()]
            self.value_sets = [ValueSetState() for _ in self.program.value_sets]
            self.tables = [Table(spec, PythonIndex(spec)) for spec in specs]

        self.log: Callable[[str], None] = lambda _text: None
        install_constants(self.program, self.tables)
        self.ingress, self.egress = self._functions(random, drop_port)

    def _functions(
        self, random: Random, drop_port: int
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        if self.native is None or self.memory is None:
            return self._compile(random, drop_port)

        self.functions = functions = NativeFunctions(self.native, self.memory, random, self._log)
        return functions.ingress, functions.egress

    def _compile(
        self, random: Random, drop_port: int
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        namespace = {
            **self._names(),
            **self._assembly.constants,
            names.RANDOM: random,
            names.DROP: drop_port,
            names.TRACE: None if self._walk is None else self._walk.trace,
            "__builtins__": BUILTINS,
        }

        # Every switch executes the code in a namespace of its own, where the names stand for its
        # own tables and registers.
        exec(self._code, namespace)
        functions = namespace["ingress"], namespace["egress"]
        return (
            functions
            if self._walk is None
            else self._walk.around(self.program, functions, drop_port, self._is_up)
        )

    def _names(self) -> dict[str, Any]:
        """Return the run-time objects under the names that generated code uses."""
        named: dict[str, Any] = {name: getattr(arithmetic, name) for name in names.ARITHMETIC}
        named.update(
            {
                names.FOLD: hashes.fold,
                names.WORDS: hashes.words,
                names.JOIN_BITS: hashes.join_bits,
                names.LOG: self._log,
            }
        )

        arrays: tuple[tuple[Callable[[int], str], Sequence[object]], ...] = (
            (names.register, self.registers),
            (names.counter, self.counters),
            (names.meter, self.meters),
            (names.profile, self.profiles),
            (names.value_set, self.value_sets),
            (names.custom_crc, self.custom_crcs),
        )
        for name_of, objects in arrays:
            named.update({name_of(i): item for i, item in enumerate(objects)})

        for i, table in enumerate(self.tables):
            index = table.index
            assert isinstance(index, PythonIndex)
            named[names.default(i)] = index.default
            named[names.entries(i)] = index.searched
            named[names.levels(i)] = index.masked.levels

        return named

    def _log(self, text: str, values: tuple[int, ...]) -> None:
        for value in values:
            # log_msg of v1model: the n-th {} is the n-th value.
            text = text.replace("{}", str(value), 1)

        self.log(text)
