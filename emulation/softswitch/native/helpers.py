"""Functions of a module that translated code calls."""

from __future__ import annotations

from emulation.softswitch.native.division_code import DivisionCode
from emulation.softswitch.native.hash_code import HashCode
from emulation.softswitch.native.meter_code import MeterCode
from emulation.softswitch.native.search_code import SearchCode


class Helpers(SearchCode, MeterCode, HashCode, DivisionCode):
    """All helpers of one module."""
