"""The compilation of functions that kernels take in whole: as parts of them, not for themselves.

numba makes a library of every function that another one calls: it optimises it with all that it
calls in turn, makes machine code of that, and then begins anew with the function around it. The
machine code of our kernels' 300 functions is never called, as they are merged into the kernels
(`forceinline`): so it is not made, and merged code is optimised in its kernel. That saves a third
of the time of a compilation; the kernels are as fast (`benchmarks/kernels.py`).
"""

from numba.core import compiler, typed_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import LoweringPass, register_pass


class _PartsCodegen:
    """numba's maker of code, which has no place for the Python objects of a part."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, env_name, env):
        # They are for code that raises exceptions and calls Python: kernels do neither.
        pass


class Part(JITCodeLibrary):
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
        manager, builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=self._codegen._opt_level, cost="cheap"
        )
        manager.run(self._final_module, builder)

    def _finalize_final_module(self):
        # As numba's, less the machine code.
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class _TakePart(LoweringPass):
    _name = "ofan_take_part"

    def __init__(self):
        LoweringPass.__init__(self)

    def run_pass(self, state):
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return True


class PartCompiler(compiler.CompilerBase):
    """numba's compiler with last steps that write to a `Part`."""

    def define_pipelines(self):
        """Return the steps: numba's own ones, and one before the code is written."""
        steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.add_pass_after(_TakePart, typed_passes.NopythonRewrites)
        steps.finalize()
        return [steps]
