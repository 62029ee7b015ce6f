"""From LLVM IR to machine code in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm

SPEED = 2


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def _machine() -> Any:
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=SPEED,
        codemodel="jitdefault",
        jit=True,
    )


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code with the addresses of its two functions; `keeper` must live as long."""

    ingress: int
    egress: int
    keeper: Any


def object_code(text: str) -> bytes:
    """Return the object file of a module given as text."""
    machine = _machine()
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    module.verify()

    options = llvm.create_pipeline_tuning_options(speed_level=SPEED)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)

    return code


def load(code: bytes, ingress: str, egress: str) -> Code:
    """Load an object file that `object_code` has made on this kind of machine."""
    _target()
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Code(
        ingress=engine.get_function_address(ingress),
        egress=engine.get_function_address(egress),
        keeper=engine,
    )
