"""Machine code reads and writes only its own memory: frames lie against forbidden pages."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from ofan_p4.softswitch.control.pipeline import Pipeline
from tests.emulation.softswitch.test_native_engine import PROGRAMS, fill, packet, source

PROT_NONE = 0
PAGES = 4


class Guarded:
    """Memory between two forbidden pages; the first byte behind its end is forbidden."""

    def __init__(self) -> None:
        size = mmap.PAGESIZE
        self._memory = mmap.mmap(-1, (PAGES + 2) * size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.end = start + (PAGES + 1) * size
        for page in (start, self.end):
            assert libc.mprotect(page, size, PROT_NONE) == 0

    def put(self, content: bytes) -> int:
        """Place bytes at the very end; return their address."""
        ctypes.memmove(self.end - len(content), content, len(content))
        return self.end - len(content)

    def room(self, size: int) -> int:
        """Return the address of the last `size` bytes."""
        return self.end - size


def run(path: Path, seed: int, count: int) -> None:
    """Send frames that end where memory ends, whole and cut at every length."""
    draw = Random(seed)
    pipeline = Pipeline(source(path), draw.randint, engine="native")
    twin = Pipeline(source(path), draw.randint, engine="native")
    for table, twin_table in zip(pipeline.tables, twin.tables, strict=True):
        fill(draw, table, twin_table, pipeline)

    native, functions = pipeline.native, pipeline.functions
    assert native is not None
    assert functions is not None
    i64 = ctypes.c_int64
    ingress = ctypes.CFUNCTYPE(i64, *[i64] * 8)(native.ingress_address)
    egress = ctypes.CFUNCTYPE(i64, *[i64] * 16)(native.egress_address)
    context = functions.addresses[0]
    data, state, out = Guarded(), Guarded(), Guarded()
    block = state.room(native.state_bytes)
    frames = [packet(draw) for _ in range(count)]
    for frame in (whole[:size] for whole in frames for size in range(len(whole) + 1)):
        frame_address = data.put(frame)
        size = len(frame)
        ingress(context, frame_address, size, size, 1, size, 0, block)
        leaves = out.room(size + native.out_growth)
        length = egress(context, frame_address, size, size, block, 510, *[0] * 9, leaves)
        assert length <= size + native.out_growth


@pytest.mark.slow
def test_nothing_beyond_a_frame_is_touched() -> None:
    # A process that touches a forbidden page dies, and should not be pytest's.
    program = (
        f"from tests.emulation.softswitch.{Path(__file__).stem} import *\n"
        "for path in PROGRAMS:\n    print(path.stem, flush=True)\n    run(path, 1, 40)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )

    # The last program named has died.
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.split() == [path.stem for path in PROGRAMS]


def test_a_touched_page_is_noticed() -> None:
    program = (
        f"from tests.emulation.softswitch.{Path(__file__).stem} import *; "
        "import ctypes; ctypes.string_at(Guarded().end, 1)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=100)

    assert done.returncode < 0
