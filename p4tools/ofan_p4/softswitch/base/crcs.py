"""CRCs with parameters from the control plane: BMv2's `crc16_custom` and `crc32_custom`."""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.softswitch.base.hashes import crc_table, reflected_crc


@dataclass(frozen=True, slots=True)
class Parameters:
    """A CRC, named as in catalogues; the polynomial is without its highest term.

    With `reflect_data` each byte comes with its lowest bit first; with `reflect_remainder` the
    remainder's bits are put in reverse order before `final_xor`.
    """

    polynomial: int
    initial: int
    final_xor: int
    reflect_data: bool
    reflect_remainder: bool


# Until the control plane sets others, these are the plain ones.
PARAMETERS: dict[str, tuple[int, Parameters]] = {
    "crc16_custom": (16, Parameters(0x8005, 0, 0, reflect_data=True, reflect_remainder=True)),
    "crc32_custom": (
        32,
        Parameters(0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, reflect_data=True, reflect_remainder=True),
    ),
}


def reversed_bits(value: int, width: int) -> int:
    """Return a number of so many bits in the reverse order."""
    return int(f"{value:0{width}b}"[::-1], 2)


REVERSED_BYTES = bytes(reversed_bits(byte, 8) for byte in range(256))


class CustomCrc:
    """One calculation of a program by a CRC with parameters.

    The remainder is held with its lowest bit first, so that one table and one loop do for all
    parameters: bytes and the remainder are reversed where they are not reflected.
    """

    def __init__(self, algorithm: str) -> None:
        self.bits, parameters = PARAMETERS[algorithm]
        self.configure(parameters)

    def configure(self, parameters: Parameters) -> None:
        """Compute with these parameters from now on."""
        self.parameters = parameters
        self.table = crc_table(reversed_bits(parameters.polynomial, self.bits))
        self.start = reversed_bits(parameters.initial, self.bits)

    def __call__(self, data: bytes) -> int:
        """Return the CRC of bytes."""
        if not self.parameters.reflect_data:
            data = data.translate(REVERSED_BYTES)

        crc = reflected_crc(data, self.table, self.start)
        if not self.parameters.reflect_remainder:
            crc = reversed_bits(crc, self.bits)

        return crc ^ self.parameters.final_xor
