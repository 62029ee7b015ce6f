"""Functions of a module that translated code calls."""

from __future__ import annotations

from ofan_p4.softswitch.native.division_code import DivisionCode
from ofan_p4.softswitch.native.hash_code import HashCode
from ofan_p4.softswitch.native.meter_code import MeterCode
from ofan_p4.softswitch.native.search_code import SearchCode


class Helpers(SearchCode, MeterCode, HashCode, DivisionCode):
    """All helpers of one module."""
