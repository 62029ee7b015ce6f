"""How kernels are compiled and where the result is kept.

numba's cache does not notice edits in the other files of a kernel and would keep an old algorithm
silently, so the cache is in a folder that is named by the hash of every module that kernels use. It
holds code, so a folder to which others can write is never used.
"""

import ctypes
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload, register_jitable

ROOT = Path(__file__).resolve().parent.parent
# Every module that kernels import, listed by hand: a test follows the imports and compares.
KERNEL_MODULES = (
    *(f"fattree/{name}.py" for name in ("draws", "policies", "topology", "units")),
    *(
        f"hostagent/{name}.py"
        for name in (
            "state",
            "roce",
            "transport",
            "labels",
            "trimmed",
            "congestion",
            "swift",
            "nscc",
        )
    ),
    *(
        f"sim/{name}.py"
        for name in (
            "jit",
            "state",
            "queues",
            "frames",
            "desk",
            "switches",
            "host_rule",
            "ready",
            "receiving",
            "sending",
            "hosts",
            "windows",
            "program_ports",
            "program_switches",
            "programs",
        )
    ),
    *(f"sim/lb/{path.name}" for path in sorted((ROOT / "sim" / "lb").glob("*.py"))),
)


class Cache(NamedTuple):
    """Where compiled kernels are kept, None for nowhere, and what the user should know of it."""

    folder: Path | None
    note: str = ""


def _cache() -> Cache:
    """Return the user's cache folder, else a private one for temporary files, else none."""
    content = b"".join((ROOT / name).read_bytes() for name in KERNEL_MODULES)
    leaf = Path("ofan") / hashlib.sha256(content).hexdigest()[:16]
    base = (
        os.environ.get("NUMBA_CACHE_DIR")
        or os.environ.get("XDG_CACHE_HOME")
        or Path.home() / ".cache"
    )

    if _is_writable(Path(base) / leaf):
        return Cache(Path(base) / leaf)

    private = Path(tempfile.gettempdir()) / f"ofan-{os.getuid()}"
    if _is_private(private) and _is_writable(private / leaf):
        return Cache(
            private / leaf, f"{base} cannot be written: keeping compiled kernels in {private}"
        )

    return Cache(
        None,
        f"{base} cannot be written, and {private} is not this user's alone: "
        "compiling for this run only",
    )


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False

    return os.access(folder, os.W_OK | os.X_OK)


def _is_private(folder: Path) -> bool:
    """Return whether a folder, made if need be, is this user's and closed to everybody else."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        # Not `stat`: a link that somebody put there leads where they want.
        found = folder.lstat()
    except OSError:
        return False

    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


# Once, when this module is imported: numba reads the folder when a kernel is declared.
CACHE = _cache()
if CACHE.folder:
    numba.config.CACHE_DIR = str(CACHE.folder)

# Without the GIL, so that `sim.threads` can run several; with divisions that do not look out for a
# zero; and without reference counts (`_nrt`): kernels create no arrays and are given all that they
# use, and counting every view of a record would cost most of the time.
kernel: Any = njit(cache=CACHE.folder is not None, nogil=True, error_model="numpy", _nrt=False)
# What kernels call, merged into them: a world is some sixty numbers and arrays to pass on.
inlined: Any = register_jitable(forceinline=True, error_model="numpy", _nrt=False)


_BYTE, _NUMBER, _WORD = (ir.IntType(bits) for bits in (8, 32, 64))


def _hint(context: Any, builder: Any, pointer: Any) -> Any:
    # llvm.prefetch(address, for reading, kept as long as possible, data not code)
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, _NUMBER, _NUMBER, _NUMBER])
    hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
    builder.call(hint, [pointer, _NUMBER(0), _NUMBER(3), _NUMBER(1)])

    return context.get_dummy_value()


def prefetch(record: Any) -> None:
    """Ask for the cache line at which a record begins, long before it is used.

    A hint that changes nothing.
    """


@intrinsic
def _prefetch(_typing, record):
    def generate(context, builder, _signature, arguments):
        return _hint(context, builder, builder.bitcast(arguments[0], _BYTE.as_pointer()))

    return types.void(record), generate


@overload(prefetch, jit_options={"_nrt": False, "forceinline": True})
def _compiled_prefetch(record):
    return lambda record: _prefetch(record)


def prefetch_at(address: int) -> None:
    """Ask for the cache line at an address, as `sim.jit.prefetch` does for a record."""


@intrinsic
def _prefetch_at(_typing, address):
    def generate(context, builder, _signature, arguments):
        return _hint(context, builder, builder.inttoptr(arguments[0], _BYTE.as_pointer()))

    return types.void(types.int64), generate


@overload(prefetch_at, jit_options={"_nrt": False, "forceinline": True})
def _compiled_prefetch_at(address):
    return lambda address: _prefetch_at(address)


def call(address: int, *arguments: int) -> int:
    """Call a C function of 64-bit integers (addresses are such, too) that returns one."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return int(kind(int(address))(*map(int, arguments)))


@intrinsic
def _call(_typing, address, arguments):
    def generate(context, builder, signature, values):
        where, given = values
        each = [
            context.cast(builder, builder.extract_value(given, i), kind, types.int64)
            for i, kind in enumerate(signature.args[1])
        ]
        kind = ir.FunctionType(_WORD, [_WORD] * len(each))
        where = context.cast(builder, where, signature.args[0], types.int64)
        return builder.call(builder.inttoptr(where, kind.as_pointer()), each)

    return types.int64(address, arguments), generate


@overload(call, jit_options={"_nrt": False, "forceinline": True})
def _compiled_call(address, *arguments):
    return lambda address, *arguments: _call(address, arguments)


@inlined
def at(index):
    """Return an index that cannot be negative, so that the compiled code need not ask."""
    # numba compiles array[i] for a signed i with a branch that adds the length to negative ones.
    return np.uint64(index)
