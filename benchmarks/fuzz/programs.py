"""Damaged BMv2 JSON: one clear error, or a program that runs."""

import json
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.fuzz.failure import CPU_PORT, FuzzFailure
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.control.switch import Switch

MOST_CPU_SECONDS = 10.0
VALUES = [
    None,
    True,
    False,
    -1,
    0,
    1,
    5,
    1 << 70,
    "",
    "h",
    "0xzz",
    "0x-1",
    "__import__('os')",
    [],
    ["h", "a"],
    {},
    {"op": "+"},
    0.5,
]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside."""
    yield path
    children = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )

    for key, child in children:
        yield from places(child, (*path, key))


def value_at(node: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for key in path:
        node = node[key]

    return node


def mutated(source: bytes, paths: list[tuple[Any, ...]], rng: random.Random) -> bytes:
    """Return a program with values replaced, moved, removed or doubled, or with bytes changed."""
    if rng.random() < 0.1:
        index = rng.randrange(len(source))
        return source[:index] + rng.randbytes(rng.randrange(3)) + source[index + 1 :]

    root = json.loads(source)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(paths)
        try:
            parent = value_at(root, path[:-1])
            key = path[-1]
            _replace(parent, key, rng, lambda: value_at(json.loads(source), rng.choice(paths)))
        except (IndexError, KeyError, TypeError):
            continue

    return json.dumps(root).encode()


def _replace(parent: Any, key: Any, rng: random.Random, draw_value: Callable[[], Any]) -> None:
    match rng.randrange(5):
        case 0:
            del parent[key]
        case 1:
            parent[key] = draw_value()
        case 2 if isinstance(parent, list):
            parent.insert(key, parent[key])
        case 3 if isinstance(parent[key], int):
            parent[key] += rng.choice([-1, 1, 1 << 16])
        case _:
            parent[key] = rng.choice(VALUES)


def fuzz_program(source: bytes, rng: random.Random) -> bool:
    """Load a damaged program and run packets.

    Return whether it was loaded, FuzzFailure where anything but one line came.
    """
    try:
        switch = Switch(
            1, clock=lambda: 0, random=lambda low, _high: low, ports=range(8), cpu_port=CPU_PORT
        )
        switch.load(source)
    except PipelineError as error:
        if "\n" in str(error):
            raise FuzzFailure(f"more than one line: {error}") from error

        return False

    for frame in (
        b"",
        rng.randbytes(9),
        rng.randbytes(90),
        bytes(12) + b"\x08\x00\x45" + rng.randbytes(60),
    ):
        for pending in switch.ingress(1, frame)[:9]:
            switch.egress(pending)

    return True


def fuzz_programs(sources: Iterable[bytes], count: int, seed: int = 1) -> dict[str, Any]:
    """Damage programs `count` times; return how many were still loaded."""
    rng = random.Random(seed)
    loaded = 0
    slowest = 0.0
    pool = [(source, [path for path in places(json.loads(source)) if path]) for source in sources]

    for number in range(count):
        source = mutated(*rng.choice(pool), rng)
        started = time.process_time()
        try:
            loaded += fuzz_program(source, rng)
            if (took := time.process_time() - started) > MOST_CPU_SECONDS:
                raise FuzzFailure(f"it takes {took:.0f} s")
        except Exception as error:
            file = Path(tempfile.gettempdir()) / "fuzzed-program.json"
            file.write_bytes(source)
            raise FuzzFailure(f"program {number}, kept as {file}: {error!r}") from error

        slowest = max(slowest, took)

    return {
        "programs": count,
        "loaded": loaded,
        "refused": count - loaded,
        "slowest_s": round(slowest, 2),
    }
