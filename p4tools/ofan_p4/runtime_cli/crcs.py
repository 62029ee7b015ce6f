"""Commands for the parameters of CRCs."""

from __future__ import annotations

from ofan_p4.runtime_cli import values
from ofan_p4.runtime_cli.names import InputError, find
from ofan_p4.runtime_cli.session import Session, command
from ofan_p4.softswitch.daemon.thrift import messages as m

PARAMETERS = (
    "<name> <polynomial> <initial-remainder> <final-xor> <reflect-data> <reflect-remainder>"
)


@command(f"set_crc16_parameters {PARAMETERS}")
def set_crc16_parameters(session: Session, tokens: list[str]) -> None:
    """Set the parameters of a calculation by crc16_custom."""
    _set_parameters(session, tokens, 16, m.Crc16Config)


@command(f"set_crc32_parameters {PARAMETERS}")
def set_crc32_parameters(session: Session, tokens: list[str]) -> None:
    """Set the parameters of a calculation by crc32_custom."""
    _set_parameters(session, tokens, 32, m.Crc32Config)


def _set_parameters(
    session: Session, tokens: list[str], bits: int, form: type[m.Crc16Config | m.Crc32Config]
) -> None:
    name, polynomial, initial, final_xor, reflect_data, reflect_remainder = tokens
    calculation = find(session.names.calculations, name, "calculation")
    algorithm = f"crc{bits}_custom"
    if calculation.algorithm != algorithm:
        raise InputError(
            f"calculation {calculation.name} is by {calculation.algorithm}, not by {algorithm}"
        )

    config = form(
        values.bits_of(polynomial, bits, "the polynomial"),
        values.bits_of(initial, bits, "the initial remainder"),
        values.bits_of(final_xor, bits, "the final xor value"),
        values.truth(reflect_data, "whether data is reflected"),
        values.truth(reflect_remainder, "whether the remainder is reflected"),
    )
    session.standard(
        f"bm_set_crc{bits}_custom_parameters",
        calc_name=calculation.name,
        **{f"crc{bits}_config": config},
    )
