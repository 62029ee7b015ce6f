"""How kernels are compiled and where the result is kept.

numba's cache does not notice edits in the other files of a kernel and would keep an old algorithm silently, so the cache
is in a folder that is named by the hash of every module that kernels use. Kernels create no arrays and are given all that
they use, so reference counts (`_nrt`) would cost most of the time for nothing.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import njit
from numba.extending import register_jitable

ROOT = Path(__file__).resolve().parent.parent
KERNEL_MODULES = (
    *("fabric/draws.py", "fabric/policies.py"),
    *(f"hostagent/{name}.py" for name in ("state", "transport", "labels", "swift")),
    *(f"sim/{name}.py" for name in ("jit", "state", "queues", "switches", "hosts", "windows")),
    *(f"sim/lb/{name}.py" for name in ("__init__", "schedules", "hashing", "round_robin", "adaptive", "rotation", "waypoint")),
)


def _cache_folder() -> Path:
    content = b"".join((ROOT / name).read_bytes() for name in KERNEL_MODULES)
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ofan" / hashlib.sha256(content).hexdigest()[:16]


CACHE = _cache_folder()
numba.config.CACHE_DIR = str(CACHE)

kernel: Any = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined: Any = register_jitable(forceinline=True, error_model="numpy", _nrt=False)


@inlined
def at(index):  # type: ignore[no-untyped-def]
    """Return an index that cannot be negative, so that the compiled code need not ask."""
    return np.uint64(index)
