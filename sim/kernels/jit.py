"""The compilation of kernels, and the store of its results.

numba's cache does not notice edits in the other files of a kernel and would keep an old algorithm
silently, so the cache is in a folder that is named by the hash of every module that kernels use.
Its files are read and written by `ofan_cache`, which loads none that others can have written.
"""

import ctypes
import hashlib
import io
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import caching, cgutils, sigutils
from numba.core.ccallback import CFunc
from numba.core.cpu import CPUContext
from numba.extending import intrinsic, overload, register_jitable

import ofan_cache
from hostagent.transports.parts import PART, KernelCompiler
from sim.kernels.sparing import spare
from sim.kernels.telling import name_long

ROOT = Path(__file__).resolve().parents[2]
# The rooms of kernels: their own, and those that all networks share with them. A test follows the
# imports and compares.
KERNEL_ROOMS = (
    "fattree",
    "fattree/shape",
    "hostagent/transports",
    "sim/kernels",
    "sim/kernels/events",
    "sim/kernels/lb",
    "sim/programs",
)
KERNEL_MODULES = tuple(
    f"{folder}/{path.name}"
    for folder in KERNEL_ROOMS
    for path in sorted((ROOT / folder).glob("*.py"))
)

# How many earlier versions of the kernels stay: some 20 MB each. Several checkouts share them, and
# none should let another's go.
MOST_VERSIONS = 16
# Far more than the kernels of a version come to.
MOST_FILES = 4096


def _cache() -> ofan_cache.Place:
    """Return the folder of this version of the kernels, and remove the oldest other versions."""
    content = b"".join((ROOT / name).read_bytes() for name in KERNEL_MODULES)
    version = hashlib.sha256(content).hexdigest()[:16]
    kept = ofan_cache.place("kernels", version, own="NUMBA_CACHE_DIR")
    if kept.folder is not None:
        # Touch the folder: pruning removes the least recently used.
        with suppress(OSError):
            os.utime(kept.folder)

        ofan_cache.prune_folders(kept.folder.parent, keep=kept.folder, limit=MOST_VERSIONS)

    return kept


spare()

# Once, when this module is imported: where a kernel is kept is settled when it is declared.
CACHE = _cache()


class _Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
    """Locator that keeps a kernel in our folder, against numba's configuration."""

    def __init__(self, function, file):
        self._py_file = file
        self._folder = Path(file).parent.name
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self):
        return str(CACHE.folder)

    def get_disambiguator(self):
        # hostagent and sim have files of the same name.
        return f"{self._folder}-{self._line}"


class _Place(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _Files(caching.IndexDataCacheFile):
    """numba's two kinds of files, an index and its data, which are pickles."""

    def _load_index(self):
        content = _kept(self._index_path)
        if content is None:
            return {}

        stream = io.BytesIO(content)
        if pickle.load(stream) != self._version:
            return {}

        stamp, overloads = pickle.load(stream)
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name):
        content = _kept(self._data_path(name))
        # numba's word for a file that is not there.
        if content is None:
            raise FileNotFoundError(name)

        return pickle.loads(content)

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[io.BytesIO]:
        stream = io.BytesIO()
        yield stream
        ofan_cache.write(Path(path).parent, Path(path).name, stream.getvalue(), MOST_FILES)


def _kept(path: str) -> bytes | None:
    return ofan_cache.read(Path(path).parent, Path(path).name)


class _KernelCache(caching.FunctionCache):
    _impl_class = _Place

    def __init__(self, function):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)


# Without the GIL, so that `sim.runs.threads` can run several; with divisions that do not look out
# for a zero; and without reference counts (`_nrt`): kernels create no arrays and are given all that
# they use, and counting every view of a record would cost most of the time.
_compiled: Any = njit(
    nogil=True,
    error_model="numpy",
    _nrt=False,
    no_cfunc_wrapper=True,
    pipeline_class=KernelCompiler,
)


def kernel(function: Callable[..., Any], long_name: str | None = None) -> Any:
    """Compile a function for the simulator when it is first called, and keep the result.

    If that takes long, stderr reports it by `long_name`.
    """
    made = _compiled(function)
    if CACHE.folder is not None:
        made._cache = _KernelCache(function)

    if long_name:
        name_long(function, long_name)

    return made


def both(function: Callable[..., Any]) -> Any:
    """Compile a function as a part of kernels, and as a kernel when Python first calls it.

    Such functions are short and called by kernels, so that the code for calls from Python would be
    most of their compilation.
    """
    made = kernel(function)

    @wraps(function)
    def called(*arguments: Any) -> Any:
        return made(*arguments)

    overload(called, jit_options=PART, strict=False)(lambda *_arguments, **_named: function)
    return called


def c_function(signature: Any, function: Callable[..., Any]) -> Any:
    """Compile a C function, and keep it; its `address` is good while it is held."""
    made: Any = CFunc(function, sigutils.normalize_signature(signature), locals={}, options={})
    if CACHE.folder is not None:
        made._cache = _KernelCache(function)

    made.compile()
    return made


# Functions that kernels call, merged into them: a world is some sixty numbers and arrays to pass
# on.
inlined: Any = register_jitable(forceinline=True, **PART)
# Options for functions with a separate Python body (`numba.extending.overload`).
INLINED = {"forceinline": True, **PART}


_ONE_AT_A_TIME = threading.Lock()
_BYTE, _NUMBER, _WORD = (ir.IntType(bits) for bits in (8, 32, 64))


def _hint(context: Any, builder: Any, pointer: Any) -> Any:
    # A GPU's compiler knows no such instruction; its other threads work while one waits.
    if not isinstance(context, CPUContext):
        return context.get_dummy_value()

    # llvm.prefetch(address, for reading, kept as long as possible, data not code)
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, _NUMBER, _NUMBER, _NUMBER])
    hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
    builder.call(hint, [pointer, _NUMBER(0), _NUMBER(3), _NUMBER(1)])

    return context.get_dummy_value()


def prefetch(record: Any, offset: int = 0) -> None:
    """Ask for the cache line of a record's byte at `offset`, long before it is used.

    A hint that changes nothing.
    """


@intrinsic
def _prefetch(_typing, record, offset):
    def generate(context, builder, _signature, arguments):
        first = builder.bitcast(arguments[0], _BYTE.as_pointer())
        return _hint(context, builder, builder.gep(first, [arguments[1]]))

    return types.void(record, types.int64), generate


@overload(prefetch, jit_options=INLINED)
def _compiled_prefetch(record, offset=0):
    return lambda record, offset=0: _prefetch(record, offset)


def prefetch_at(address: int) -> None:
    """Ask for the cache line at an address, as `sim.kernels.jit.prefetch` does for a record."""


@intrinsic
def _prefetch_at(_typing, address):
    def generate(context, builder, _signature, arguments):
        return _hint(context, builder, builder.inttoptr(arguments[0], _BYTE.as_pointer()))

    return types.void(types.int64), generate


@overload(prefetch_at, jit_options=INLINED)
def _compiled_prefetch_at(address):
    return lambda address: _prefetch_at(address)


def clear(record: Any) -> None:
    """Set all bytes of a record to zero."""
    for name in record.dtype.names:
        record[name] = 0


@intrinsic
def _clear(_typing, record):
    def generate(context, builder, _signature, arguments):
        first = builder.bitcast(arguments[0], _BYTE.as_pointer())
        cgutils.memset(builder, first, ir.Constant(_WORD, record.size), 0)
        return context.get_dummy_value()

    return types.void(record), generate


@overload(clear, jit_options=INLINED)
def _compiled_clear(record):
    return lambda record: _clear(record)


def load_at(address: int) -> int:
    """Return the word at an address, which need not be aligned."""
    return ctypes.c_int64.from_address(int(address)).value


@intrinsic
def _load_at(_typing, address):
    def generate(_context, builder, _signature, arguments):
        return builder.load(builder.inttoptr(arguments[0], _WORD.as_pointer()), align=1)

    return types.int64(types.int64), generate


@overload(load_at, jit_options=INLINED)
def _compiled_load_at(address):
    return lambda address: _load_at(address)


def store_at(address: int, word: int) -> None:
    """Write a word to an address, as `load_at` reads it."""
    ctypes.c_int64.from_address(int(address)).value = int(word)


@intrinsic
def _store_at(_typing, address, word):
    def generate(context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], _WORD.as_pointer())
        builder.store(arguments[1], pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@overload(store_at, jit_options=INLINED)
def _compiled_store_at(address, word):
    return lambda address, word: _store_at(address, word)


def turned(word: int) -> int:
    """Return a word with its bytes in the other order: frames have the highest first."""
    octets = (int(word) & (1 << 64) - 1).to_bytes(8, "little")
    return int.from_bytes(octets, "big", signed=True)


@intrinsic
def _turned(_typing, word):
    def generate(_context, builder, _signature, arguments):
        return builder.bswap(arguments[0])

    return types.int64(types.int64), generate


@overload(turned, jit_options=INLINED)
def _compiled_turned(word):
    return lambda word: _turned(word)


def call(address: int, *arguments: int) -> int:
    """Call a C function of 64-bit integers, addresses among them, with such a result."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return int(kind(int(address))(*map(int, arguments)))


@intrinsic
def _call(_typing, address, arguments):
    def generate(context, builder, signature, values):
        # Nor are a C function's instructions any for a GPU (`sim.gpu.engine.refuse_unable`).
        if not isinstance(context, CPUContext):
            return _WORD(0)

        address, packed = values
        operands = [
            context.cast(builder, builder.extract_value(packed, i), kind, types.int64)
            for i, kind in enumerate(signature.args[1])
        ]
        kind = ir.FunctionType(_WORD, [_WORD] * len(operands))
        address = context.cast(builder, address, signature.args[0], types.int64)
        return builder.call(builder.inttoptr(address, kind.as_pointer()), operands)

    return types.int64(address, arguments), generate


@overload(call, jit_options=INLINED)
def _compiled_call(address, *arguments):
    return lambda address, *arguments: _call(address, arguments)


def fetch_add(array: Any, index: int, number: int) -> int:
    """Add to an element of 64 bits atomically; return the old value."""
    # Interpreted only where a GPU's threads are simulated.
    with _ONE_AT_A_TIME:
        before = int(array[index])
        array[index] = before + number

    return before


@intrinsic
def _fetch_add(_typing, array, index, number):
    def generate(context, builder, signature, arguments):
        numbers = context.make_array(signature.args[0])(context, builder, arguments[0])
        element = builder.gep(numbers.data, [arguments[1]])
        return builder.atomic_rmw("add", element, arguments[2], "monotonic")

    return types.int64(array, types.int64, types.int64), generate


@overload(fetch_add, jit_options=INLINED)
def _compiled_fetch_add(array, index, number):
    return lambda array, index, number: _fetch_add(array, index, number)


@inlined
def at(index):
    """Return an index that cannot be negative, so that the compiled code need not check it."""
    # numba compiles array[i] for a signed i with a branch that adds the length to negative ones.
    return np.uint64(index)
