"""Named tuples that compiled functions get by address: the compiler reads the fields it needs.

numba passes a named tuple as all its numbers: each function takes it apart and puts it together
again, which was most of the code that numba wrote and LLVM removed. A `Bundle` is one address. Its
memory is written when Python calls a kernel and does not change before the kernel returns, so that
LLVM may take a loaded field for a constant, whatever stores stand in between.
"""

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import typeof_impl
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)
from numba.np.numpy_support import as_dtype

ClassT = TypeVar("ClassT", bound=type)
ADDRESS = ir.IntType(8).as_pointer()
WORD = ir.IntType(64)
WORD_BYTES = 8
# A GPU does not read the processor's memory: for its compiler, numba passes the numbers.
IS_BY_ADDRESS = not find_spec("numba_cuda")


class Bundle(types.Type):
    """The type of a named tuple: its fields, their types, and constants by name."""

    def __init__(
        self,
        made_of: type,
        fields: tuple[str, ...],
        members: tuple[types.Type, ...],
        constants: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self.made_of = made_of
        self.fields = fields
        self.types = members
        self.constants = constants
        self._offsets: tuple[int, ...] = ()
        # Compiled functions are named by the types of their arguments. The digest keeps such names
        # short, and those of different types apart.
        digest = hashlib.sha256(repr((fields, members, constants)).encode()).hexdigest()[:16]
        super().__init__(name=f"{made_of.__qualname__}_{digest}")

    @property
    def key(self) -> tuple[Any, ...]:
        """Return the value by which numba compares types."""
        # The name stands for the fields, and is compared faster.
        return (self.made_of, self.name)

    def offsets(self, context: Any) -> tuple[int, ...]:
        """Return the offset of each field, and last the size of all, in bytes."""
        if not self._offsets:
            ends = [0]
            for member in self.types:
                if isinstance(member, Bundle):
                    size = member.offsets(context)[-1]
                else:
                    size = context.get_abi_sizeof(context.get_value_type(member))

                ends.append(ends[-1] + -(-size // WORD_BYTES) * WORD_BYTES)

            self._offsets = tuple(ends)

        return self._offsets

    def knowing(self, numbers: Mapping[str, Mapping[str, int]]) -> "Bundle":
        """Return the type with known numbers in its inner bundles, by field and name."""
        members = tuple(
            Bundle(member.made_of, member.fields, member.types, tuple(numbers[name].items()))
            if isinstance(member, Bundle) and name in numbers
            else member
            for name, member in zip(self.fields, self.types, strict=True)
        )
        return Bundle(self.made_of, self.fields, members, self.constants)


def by_address(made_of: ClassT) -> ClassT:
    """Let kernels get instances of a named tuple by address, with the named tuples in them."""
    if IS_BY_ADDRESS:
        typeof_impl.register(made_of)(_type_of)

    return made_of


def _type_of(value: Any, _context: object = None) -> types.Type:
    if not hasattr(value, "_fields"):
        return numba.typeof(value)

    return Bundle(type(value), value._fields, tuple(map(_type_of, value)))


@register_model(Bundle)
class _BundleModel(models.PrimitiveModel):
    def __init__(self, manager, bundle):
        super().__init__(manager, bundle, ADDRESS)


@infer_getattr
class _Fields(AttributeTemplate):
    key = Bundle

    def generic_resolve(self, bundle, name):
        return bundle.types[bundle.fields.index(name)] if name in bundle.fields else None


@lower_getattr_generic(Bundle)
def _field(context, builder, bundle, address, name):
    """Emit the code that reads a field."""
    constant = dict(bundle.constants).get(name)
    if constant is not None:
        return context.get_constant(types.int64, constant)

    index = bundle.fields.index(name)
    member = bundle.types[index]
    pointer = builder.gep(address, [WORD(bundle.offsets(context)[index])])
    if isinstance(member, Bundle):
        return pointer

    pointer = builder.bitcast(pointer, context.get_value_type(member).as_pointer())
    if isinstance(member, types.Array):
        return _array(context, builder, member, pointer)

    return _load(builder, pointer)


def _array(context: Any, builder: Any, member: types.Array, pointer: Any) -> Any:
    """Emit the code that reads an array's description, as far as it is not known by type."""
    array = context.make_array(member)(context, builder)
    numbers = {name: number for number, name in enumerate(array._datamodel._fields)}

    def part(name: str, *axis: int) -> Any:
        return _load(builder, cgutils.gep_inbounds(builder, pointer, 0, numbers[name], *axis))

    axes = range(member.ndim)
    shape = [part("shape", axis) for axis in axes]
    itemsize = WORD(as_dtype(member.dtype).itemsize)
    if member.layout == "C":
        strides = [itemsize]
        for length in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
    else:
        strides = [part("strides", axis) for axis in axes]

    array.data = part("data")
    array.nitems = part("nitems")
    array.itemsize = itemsize
    array.shape = cgutils.pack_array(builder, shape)
    array.strides = cgutils.pack_array(builder, strides)

    return array._getvalue()


def _load(builder: Any, pointer: Any) -> Any:
    loaded = builder.load(pointer)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


@unbox(Bundle)
def _unbox(bundle, value, c):
    """Emit the code that writes a named tuple to the stack of the call from Python."""
    size = bundle.offsets(c.context)[-1]
    memory = cgutils.alloca_once(c.builder, ir.ArrayType(WORD, size // WORD_BYTES))
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    address = c.builder.bitcast(memory, ADDRESS)
    _write(bundle, value, c, address, failed)

    return NativeValue(address, is_error=c.builder.load(failed))


def _write(bundle, value, c, address, failed):
    builder = c.builder
    for index, member in enumerate(bundle.types):
        item = c.pyapi.tuple_getitem(value, index)
        pointer = builder.gep(address, [WORD(bundle.offsets(c.context)[index])])
        if isinstance(member, Bundle):
            _write(member, item, c, pointer, failed)
            continue

        native = c.unbox(member, item)
        assert native.cleanup is None, "kernels get numbers and arrays"
        with builder.if_then(native.is_error, likely=False):
            builder.store(cgutils.true_bit, failed)

        kind = c.context.get_value_type(member)
        builder.store(native.value, builder.bitcast(pointer, kind.as_pointer()))
