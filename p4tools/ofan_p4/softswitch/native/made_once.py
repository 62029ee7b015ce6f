"""Functions of a module, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ofan_p4.softswitch.native.values import Builder


class MadeOnce:
    """A module and the functions that it has already."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._made: dict[str, ir.Function] = {}

    def _function(
        self, name: str, result: ir.Type, arguments: Sequence[ir.Type], body: Callable[..., None]
    ) -> ir.Function:
        if name not in self._made:
            function = ir.Function(self._module, ir.FunctionType(result, arguments), name=name)
            function.linkage = "internal"
            self._made[name] = function
            builder = Builder(function.append_basic_block("entry"))
            body(builder, *function.args)

        return self._made[name]
