"""How kernels are compiled and where the result is kept.

numba's cache does not notice edits in the other files of a kernel and would keep an old algorithm
silently, so the cache is in a folder that is named by the hash of every module that kernels use. It
holds code, so a folder to which others can write is never used. Kernels create no arrays and are
given all that they use, so reference counts (`_nrt`) would cost most of the time for nothing.
"""

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
KERNEL_MODULES = (
    *("fattree/draws.py", "fattree/policies.py"),
    *(f"hostagent/{name}.py" for name in ("state", "transport", "labels", "swift")),
    *(f"sim/{name}.py" for name in ("jit", "state", "queues", "switches", "hosts", "windows")),
    *(f"sim/lb/{path.name}" for path in sorted((ROOT / "sim" / "lb").glob("*.py"))),
)


class Cache(NamedTuple):
    """Where compiled kernels are kept, None for nowhere, and what the user should know about that."""

    folder: Path | None
    note: str = ""


def _cache() -> Cache:
    """Return the user's cache folder, or where that cannot be written a private one for temporary
    files, or none.
    """
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
        f"{base} cannot be written, and {private} is not this user's alone: compiling for this run only",
    )


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False

    return os.access(folder, os.W_OK | os.X_OK)


def _is_private(folder: Path) -> bool:
    """Return whether a folder, made if need be, is this user's and nobody else can look into it or
    write to it.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False

    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


CACHE = _cache()
if CACHE.folder:
    numba.config.CACHE_DIR = str(CACHE.folder)

kernel: Any = njit(cache=CACHE.folder is not None, nogil=True, error_model="numpy", _nrt=False)
inlined: Any = register_jitable(forceinline=True, error_model="numpy", _nrt=False)


def prefetch(record: Any) -> None:
    """Ask for the cache line at which a record begins, long before it is used.

    A hint that changes nothing.
    """


@intrinsic
def _prefetch(_typing, record):
    def generate(context, builder, _signature, arguments):
        number = ir.IntType(32)
        pointer = builder.bitcast(arguments[0], ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(hint, [pointer, number(0), number(3), number(1)])

        return context.get_dummy_value()

    return types.void(record), generate


@overload(prefetch, jit_options={"_nrt": False, "forceinline": True})
def _compiled_prefetch(record):
    return lambda record: _prefetch(record)


@inlined
def at(index):
    """Return an index that cannot be negative, so that the compiled code need not ask."""
    return np.uint64(index)
