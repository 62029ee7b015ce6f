"""The runtime API's calls for calculations by a CRC with parameters."""

from __future__ import annotations

from ofan_p4.softswitch.base.crcs import CustomCrc, Parameters
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.messages import CrcError, Refusal
from ofan_p4.softswitch.daemon.thrift.state import Runtime, found


class CrcCalls(m.Part):
    """Parameters of calculations."""

    codes = m.CrcError

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def bm_set_crc16_custom_parameters(self, calc_name: str, crc16_config: m.Crc16Config) -> None:
        configure(self._crc(calc_name, 16), crc16_config)

    def bm_set_crc32_custom_parameters(self, calc_name: str, crc32_config: m.Crc32Config) -> None:
        configure(self._crc(calc_name, 32), crc32_config)

    def _crc(self, name: str, bits: int) -> CustomCrc:
        loaded = self._runtime.loaded
        found(loaded.calculations, name, CrcError.INVALID_CALCULATION_NAME)
        crc = found(loaded.custom_crcs, name, CrcError.WRONG_TYPE_CALCULATION)
        if crc.bits != bits:
            raise Refusal(CrcError.WRONG_TYPE_CALCULATION)

        return crc


def configure(crc: CustomCrc, config: m.Crc16Config | m.Crc32Config) -> None:
    """Give a CRC parameters; the API has no unsigned numbers."""
    numbers = (config.polynomial, config.initial_remainder, config.final_xor_value)
    polynomial, initial, final_xor = (number % (1 << crc.bits) for number in numbers)
    crc.configure(
        Parameters(
            polynomial,
            initial,
            final_xor,
            reflect_data=config.data_reflected,
            reflect_remainder=config.remainder_reflected,
        )
    )
