"""The P4_16 programs: one file is one load balancer; `include/` is shared by all.

Imports nobody.
"""

from pathlib import Path

# Package data: in an installed wheel as in a checkout the programs stand beside this file.
FOLDER = Path(__file__).parent
INCLUDE = FOLDER / "include"


def programs() -> list[str]:
    """Return the names of the programs."""
    return sorted(path.stem for path in FOLDER.glob("*.p4"))


def path(program: str) -> Path:
    """Return the source of a program; raises ValueError where there is none."""
    if program not in programs():
        raise ValueError(f"there is no P4 program {program!r}; choose from {', '.join(programs())}")

    return FOLDER / f"{program}.p4"


def p4info_path(program: str) -> Path:
    """Return the checked-in P4Info of a program, in protobuf's text format.

    Raises ValueError where there is none.
    """
    return path(program).parent / "p4info" / f"{program}.txtpb"
