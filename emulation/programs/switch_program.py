"""P4 programs ready to run: the project's own, a user's source, or BMv2 JSON of any compiler."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import p4src
from emulation.errors import EmulationError, ProgramError
from emulation.programs.p4c import p4c
from fattree.experiment.model import Settings
from fattree.shape.topology import FatTree
from ofan_p4.bounded import TooLargeError, read_bytes
from ofan_p4.diagnostics import NO_MACROS, Macros

if TYPE_CHECKING:
    from controller.pipeline import Pipeline

Compiler: TypeAlias = Literal["ofan", "p4c"]
# The port of packet-ins and packet-outs in our programs (p4src/include/sizes.p4).
CPU_PORT = 510
# The header that programs put on between edges (p4src/include/headers.p4).
EDGE_HEADER = "edge_header"
# The table with the interval of their probes (p4src/include/probes.p4).
PROBE_TIMER = "probe_timer"
# The folders in which programs find our includes.
INCLUDE_FOLDERS = (p4src.INCLUDE, p4src.FOLDER)


@dataclass(frozen=True, slots=True, eq=False)
class SwitchProgram:
    """The program that a switch loads, and its P4Runtime contract as the controller reads it.

    Of our compiler's, its warnings, the fate of macros, the user's among them, and the paths of
    the files that it includes.
    """

    bmv2_json: bytes
    pipeline: "Pipeline"
    warnings: tuple[str, ...] = ()
    macros: Macros = NO_MACROS
    included: tuple[str, ...] = ()

    @property
    def edge_header_bytes(self) -> int:
        """Return how long the program's header between edges is, 0 without a header.

        Links between switches carry so many bytes more of each packet (include/between_edges.p4).
        """
        return _edge_header_bytes(self.bmv2_json)

    @property
    def probe_interval_us(self) -> int:
        """Return how often edges send the program's probes, 0 without probes.

        It is the argument of a table's default action (include/probes.p4).
        """
        return _probe_interval_us(self.bmv2_json)


@dataclass(frozen=True, slots=True)
class Priorities:
    """The queue of the controller's packets and that of ACKs: 0, or 1 where switches have two."""

    control: int = 0
    acks: int = 0


class Size(NamedTuple):
    """Size that a program must be built for: uplinks, and routes where they exceed the usual."""

    uplinks: int
    routes: int = 0


def size_of(tree: FatTree, has_host_pointers: bool = False) -> Size:
    """Return the size of the programs of a fabric's switches (`has_host_pointers`)."""
    # An edge has its hosts, all other edges, and twice its uplinks for Host DR; there are as many
    # pointers, two for each other edge. Parallel links lead down to hosts singly.
    routes = tree.edges + max(tree.edges, tree.hosts_per_edge + 2 * tree.edge_uplinks)
    if tree.edge_agg_links > 1:
        routes = max(
            routes, tree.hosts_per_pod + tree.pods + tree.edge_agg_links * tree.agg_uplinks
        )
    if tree.agg_core_links > 1:
        routes = max(routes, tree.machines)
    # Rotations have two pointers for each host then.
    if tree.has_parallel_links or has_host_pointers:
        routes = max(routes, 2 * tree.hosts)

    uplinks = size_for(tree.most_uplinks)
    return Size(uplinks, routes if routes > 4 * uplinks**2 else 0)


def has_host_pointers(settings: Settings) -> bool:
    """Return whether settings ask for a pointer per destination host."""
    options = settings.load_balancer
    return "host" in (options.edge_pointers, options.agg_pointers)


def program_size(settings: Settings) -> Size:
    """Return the size of the programs of an experiment's or a scenario's switches."""
    return size_of(settings.fabric.tree, has_host_pointers(settings))


# All scenarios of an experiment want the same few programs.
@lru_cache
def load_program(
    path: Path,
    size: Size,
    priorities: Priorities = Priorities(),
    compiler: Compiler = "ofan",
    macros: tuple[tuple[str, str], ...] = (),
    content: str = "",
) -> SwitchProgram:
    """Compile a `.p4` file for switches of a size, or read a `.json` with its P4Info.

    `macros` are the user's, by name and value. A file is read once for each digest of its `content`
    (`program_files.content_digest`).

    Raises CompileError, PlanError (a corrupt P4Info) and EmulationError (a file that cannot be
    read, or no JSON; p4c's words).
    """
    from controller.pipeline import Pipeline  # noqa: PLC0415  # protocol buffers

    if path.suffix not in (".p4", ".json"):
        raise ProgramError(f"{path}: a program is P4 source (.p4), or BMv2 JSON (.json)")

    if path.suffix == ".json" and macros:
        raise ProgramError(f"{path} is compiled already: -D {macros[0][0]} is for P4 source (.p4)")
    if path.suffix == ".json":
        return SwitchProgram(_json_bytes(path), Pipeline.read(_p4info_of(path)))

    defines = defines_for(size, priorities, macros)
    if compiler == "p4c":
        with TemporaryDirectory() as folder:
            source, p4info = p4c(path, INCLUDE_FOLDERS, defines, Path(folder))
            return SwitchProgram(_json_bytes(source), Pipeline.read(p4info))

    from ofan_p4.compiler import compile_file  # noqa: PLC0415  # many modules

    compiled = compile_file(path, INCLUDE_FOLDERS, defines)
    return SwitchProgram(
        json.dumps(compiled.json).encode(),
        Pipeline(compiled.p4info),
        tuple(map(str, compiled.warnings)),
        compiled.macros,
        compiled.included,
    )


def defines_for(
    size: Size,
    priorities: Priorities = Priorities(),
    macros: tuple[tuple[str, str], ...] = (),
) -> dict[str, str]:
    """Return the macros with which a program is compiled for switches of a size."""
    defines = dict(macros) | {
        "MAX_UPLINKS": str(size_for(size.uplinks)),
        "CONTROL_PRIORITY": str(priorities.control),
        "ACK_PRIORITY": str(priorities.acks),
    }

    if size.routes:
        defines["MAX_ROUTES"] = str(size.routes)

    return defines


@lru_cache
def _edge_header_bytes(bmv2_json: bytes) -> int:
    try:
        program = json.loads(bmv2_json)
        kinds = [
            header["header_type"]
            for header in program["headers"]
            if str(header["name"]).rpartition(".")[2] == EDGE_HEADER
        ]
        bits = [
            sum(width for _, width, *_ in kind["fields"])
            for kind in program["header_types"]
            if kind["name"] in kinds
        ]
        return int(sum(bits)) // 8
    # Not a BMv2 JSON: the switch that loads it refuses it.
    except (KeyError, TypeError, ValueError):
        return 0


@lru_cache
def _probe_interval_us(bmv2_json: bytes) -> int:
    try:
        tables = [table for part in json.loads(bmv2_json)["pipelines"] for table in part["tables"]]
        for table in tables:
            if str(table["name"]).rpartition(".")[2] == PROBE_TIMER:
                return int(table["default_entry"]["action_data"][0], 16)
    # As above.
    except (IndexError, KeyError, TypeError, ValueError):
        pass

    return 0


def built_in(
    name: str, size: Size, priorities: Priorities = Priorities(), compiler: Compiler = "ofan"
) -> SwitchProgram:
    """Return a program of `p4src`."""
    return load_program(p4src.path(name), size, priorities, compiler)


def size_for(uplinks: int) -> int:
    """Return the smallest size that our programs can be built for: a power of two, at least 2."""
    return max(2, 1 << (uplinks - 1).bit_length())


def _p4info_of(path: Path) -> Path:
    info = path.with_suffix(".txtpb")
    if not info.exists():
        raise EmulationError(
            f"{path} needs its P4Info beside it, {info.name}:"
            f" the compiler writes it with --p4runtime-files {info.name}"
        )

    return info


def _json_bytes(path: Path) -> bytes:
    try:
        source = read_bytes(path)
        # Only looked at: switches are sent the file as it is.
        json.loads(source)
    except OSError as error:
        raise EmulationError(f"{path}: {error.strerror}") from None
    except TooLargeError as error:
        raise EmulationError(f"{path}: {error}") from None
    except ValueError as error:
        raise EmulationError(f"{path}: corrupt JSON: {error}") from None

    return source
