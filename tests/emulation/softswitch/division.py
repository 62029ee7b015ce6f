"""CRCs as their definition has them, to judge others by."""

from __future__ import annotations

from ofan_p4.softswitch.base.crcs import Parameters


def divided(data: bytes, width: int, parameters: Parameters) -> int:
    """Return a CRC bit by bit: the remainder of a division of polynomials."""
    bits = "".join(
        f"{byte:08b}"[::-1] if parameters.reflect_data else f"{byte:08b}" for byte in data
    )
    # The initial remainder is added to the first bits, of which there are some behind the data.
    number = int(bits + "0" * width, 2) ^ parameters.initial << len(bits)
    divisor = 1 << width | parameters.polynomial
    for index in range(len(bits) + width - 1, width - 1, -1):
        if number >> index & 1:
            number ^= divisor << index - width

    text = f"{number:0{width}b}"
    return int(text[::-1] if parameters.reflect_remainder else text, 2) ^ parameters.final_xor
