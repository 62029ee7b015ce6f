"""P4 programs ready to run: the project's own, a user's source, or BMv2 JSON that some compiler has written."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import p4src
from controller.pipeline import Pipeline
from emulation.compiler import compile_file
from emulation.errors import EmulationError


@dataclass(frozen=True, slots=True, eq=False)
class SwitchProgram:
    """What a switch loads, and its P4Runtime contract as the controller reads it."""

    bmv2_json: bytes
    pipeline: Pipeline


@lru_cache
def load_program(path: Path, uplinks: int) -> SwitchProgram:
    """Compile a `.p4` file for switches of so many uplinks, or read a `.json` with its P4Info beside it (`.txtpb`).

    Raises CompileError, PlanError (a corrupt P4Info) and EmulationError (a file that cannot be read, or no JSON).
    """
    if path.suffix == ".json":
        return SwitchProgram(_json_bytes(path), Pipeline.read(path.with_suffix(".txtpb")))
    compiled = compile_file(path, (p4src.INCLUDE, p4src.FOLDER), {"MAX_UPLINKS": str(size_for(uplinks))})
    return SwitchProgram(json.dumps(compiled.json).encode(), Pipeline(compiled.p4info))


def built_in(name: str, uplinks: int) -> SwitchProgram:
    """Return a program of `p4src`."""
    return load_program(p4src.path(name), uplinks)


def size_for(uplinks: int) -> int:
    """Return the smallest size that our programs can be built for: a power of two, at least 2."""
    return max(2, 1 << (uplinks - 1).bit_length())


def _json_bytes(path: Path) -> bytes:
    try:
        source = path.read_bytes()
        json.loads(source)
    except OSError as error:
        raise EmulationError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise EmulationError(f"{path}: corrupt JSON: {error}") from None
    return source
