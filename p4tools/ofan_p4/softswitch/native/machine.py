"""From LLVM IR to machine code in memory."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

SPEED = 2
# Programs of more lines are optimised by a few passes, in a fifth of the time: DASH (15,600 lines)
# in 0.1 s instead of 0.55, and its code is 15 % slower.
LONG_LINES = 8_000
# Beyond so many lines LLVM's own way to share registers takes the square of their number: 20 s of
# processor time for 30,000, and 1 s in its simple way.
MOST_LINES = 20_000
# A shift by a number that is not known, or a product, becomes about as many instructions as the
# square of its 64-bit words, which LLVM's own way orders for long: 20 shifts of 2,048 bits took it
# 20 s, and 0.2 s in the simple way. Beyond so many, that is taken.
MOST_WIDE = 5_000
WIDE = re.compile(r"= (?:(?:shl|lshr|ashr) i(\d{3,}) [^,]+, %|mul i(\d{3,}) )")
WORD_BITS = 64
# Functions of a compiler's library have such names (`__udivti3`): no process need have it, and a
# call of a missing function goes to address 0.
LIBRARY_NAME = re.compile(rb"\0(__[a-z]\w{5,})\0")
PACKAGE = Path(__file__).parent.parent


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def _machine(speed: int = SPEED) -> Any:
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=speed,
        codemodel="jitdefault",
        jit=True,
    )


@cache
def _maker() -> bytes:
    """Return a digest of all that code depends on beside the program: sources, LLVM, the CPU."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.glob("*/*.py")):
        digest.update(path.read_bytes())

    for part in (llvmlite.__version__, llvm.get_host_cpu_name(), llvm.get_process_triple()):
        digest.update(part.encode() + b"\0")

    digest.update(llvm.get_host_cpu_features().flatten().encode())
    return digest.digest()


def identity(source: bytes) -> str:
    """Return the name of a program's code: different code never has the same name."""
    return hashlib.sha256(_maker() + source).hexdigest()


def program_identity(source: bytes, use: bytes = b"") -> str:
    """Return the name of a program's code for a use; the source is valid BMv2 JSON.

    The folder of its P4 file and its comments make no other code.
    """
    # Texts and lines of the P4 file are for messages and traces, and machine code has none.
    try:
        root = json.loads(source, object_hook=_without_places)
        root.pop("program", None)
        return identity(use + json.dumps(root).encode())
    except RecursionError:
        return identity(use + source)


def _without_places(part: dict[str, Any]) -> dict[str, Any]:
    part.pop("source_info", None)
    return part


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code in memory with the addresses of its functions; `keeper` must live as long."""

    addresses: tuple[int, ...]
    keeper: Any


def object_code(text: str) -> bytes:
    """Return the object file of a module given as text; raises RuntimeError where LLVM fails."""
    # The optimiser always runs, with fewer passes for long programs; for the longest and widest the
    # allocation of registers is simple, too.
    lines = text.count("\n")
    is_simple = lines > MOST_LINES or _wide_instructions(text) > MOST_WIDE
    machine = _machine(0 if is_simple else SPEED)
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    module.verify()

    options = llvm.create_pipeline_tuning_options(speed_level=SPEED)
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager() if lines <= LONG_LINES else _few_passes()
    passes.run(module, builder)
    code: bytes = machine.emit_object(module)
    # Checked here, as a call of address 0 would end the process at some packet.
    missing = LIBRARY_NAME.search(code)
    if missing is not None:
        raise RuntimeError(f"LLVM calls {missing[1].decode()}, which is not there")

    return code


def _wide_instructions(text: str) -> int:
    """Return how many instructions the wide shifts and products of a module become, about."""
    widths = (int(shift or product) for shift, product in WIDE.findall(text))
    return sum((width // WORD_BITS) ** 2 for width in widths)


def _few_passes() -> Any:
    """Return the passes of LLVM that matter most for a program's code, which has few loops."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_sccp_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_aggressive_dce_pass()
    return passes


def load(code: bytes, *functions: str) -> Code:
    """Load an object file that `object_code` has made on this kind of machine."""
    _target()
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Code(tuple(map(engine.get_function_address, functions)), keeper=engine)
