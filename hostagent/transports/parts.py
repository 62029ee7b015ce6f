"""The compilation of kernels, and of functions that kernels take in whole: their parts.

numba makes a library of every function that another one calls: it optimises it with all that it
calls in turn, makes machine code of that, and then begins anew with the function around it. The
machine code of our kernels' 400 parts is never called, as they are merged into the kernels: so it
is not made, and merged code has most of its passes in its kernel. Vectors are left out, and the
last of LLVM's levels: kernels run from record to record, and are as fast without
(`benchmarks/kernels.py`).
"""

from importlib.util import find_spec
from typing import Any

from numba.core import compiler, typed_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.extending import register_jitable


class _Library(JITCodeLibrary):
    """A compiled function and all that it calls, by as few passes as it needs."""

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout
        builder = self._passes(1)
        manager = builder.getFunctionPassManager()
        for function in ll_module.functions:
            if not function.is_declaration:
                manager.run(function, builder)

    def _passes(self, level):
        return self._codegen._pass_builder(opt=level, loop_vectorize=False, slp_vectorize=False)


class Kernel(_Library):
    """The code of a function that Python calls."""

    def _optimize_final_module(self):
        builder = self._passes(2)
        builder.getModulePassManager().run(self._final_module, builder)


class _PartsCodegen:
    """numba's maker of code, which has no place for the Python objects of a part."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, env_name, env):
        # They are for code that raises exceptions and calls Python: kernels do neither.
        pass


class Part(_Library):
    """The code of a function that is merged into others and never called."""

    @property
    def codegen(self):
        """Return numba's consumer of a function's Python objects."""
        return _PartsCodegen(self._codegen)

    def get_pointer_to_function(self, name):
        """Return 0, numba's sign for no function to be called from Python."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self):
        # Merge the functions of a function, so that the functions around it have less to read.
        builder = self._passes(0)
        manager = builder.getModulePassManager()
        manager.add_instruction_combine_pass()
        manager.add_simplify_cfg_pass()
        manager.run(self._final_module, builder)

    def _finalize_final_module(self):
        # As numba's, less the machine code.
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _TakeLibrary(LoweringPass):
    """The step before the code is written: it chooses the library."""

    kind: type[_Library]

    def __init__(self):
        LoweringPass.__init__(self)

    def run_pass(self, state):
        state.library = self.kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _TakeKernel(_TakeLibrary):
    _name = "ofan_take_kernel"
    kind = Kernel


@register_pass(mutates_CFG=False, analysis_only=False)
class _TakePart(_TakeLibrary):
    _name = "ofan_take_part"
    kind = Part


class _Compiler(compiler.CompilerBase):
    """numba's compiler with last steps that write to a library of ours."""

    step: type[_TakeLibrary]

    def define_pipelines(self):
        """Return the steps: numba's own ones, and one before the code is written."""
        steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.add_pass_after(self.step, typed_passes.NopythonRewrites)
        steps.finalize()
        return [steps]


class KernelCompiler(_Compiler):
    """The compiler of kernels."""

    step = _TakeKernel


class PartCompiler(_Compiler):
    """The compiler of parts."""

    step = _TakePart


# A compiler for a GPU takes the same functions, and knows no such option.
_PIPELINE: dict[str, Any] = {} if find_spec("numba_cuda") else {"pipeline_class": PartCompiler}
# Without reference counts (`_nrt`): parts create no arrays. Divisions do not look out for a zero.
PART = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True, **_PIPELINE}
# Let kernels call a function, as it is in Python.
part: Any = register_jitable(**PART)
