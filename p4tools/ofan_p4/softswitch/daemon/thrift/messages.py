"""The structs and error codes of BMv2's services, numbered as there."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from ofan_p4.softswitch.daemon.thrift.wire import I16, I32, I64

# A method that is not there, and anything else.
UNKNOWN_METHOD = 1
INTERNAL_ERROR = 6


class MatchType(IntEnum):
    """The kinds of match."""

    EXACT = 0
    LPM = 1
    TERNARY = 2
    VALID = 3
    RANGE = 4


class EntryType(IntEnum):
    """The kinds of a table entry."""

    NONE = 0
    ACTION_DATA = 1
    MBR_HANDLE = 2
    GRP_HANDLE = 3


@dataclass(slots=True)
class Exact:
    """A value."""

    key: bytes


@dataclass(slots=True)
class Lpm:
    """A prefix."""

    key: bytes
    prefix_length: I32


@dataclass(slots=True)
class Ternary:
    """A value under a mask."""

    key: bytes
    mask: bytes


@dataclass(slots=True)
class Valid:
    """Whether a header is there."""

    key: bool


@dataclass(slots=True)
class Range:
    """From start to end, both included."""

    start: bytes
    end_: bytes


@dataclass(slots=True)
class MatchParam:
    """The match of one key field: the member that `type` names."""

    type: I32
    exact: Exact | None = None
    lpm: Lpm | None = None
    ternary: Ternary | None = None
    valid: Valid | None = None
    range: Range | None = None


@dataclass(slots=True)
class AddEntryOptions:
    """The priority of an entry: the smallest number wins."""

    priority: I32 | None = None


@dataclass(slots=True)
class CounterValue:
    """Bytes and packets."""

    bytes: I64
    packets: I64


@dataclass(slots=True)
class MeterRate:
    """Bytes or packets per microsecond, and at once."""

    units_per_micros: float
    burst_size: I32


@dataclass(slots=True)
class ActionEntry:
    """An action with its arguments, or a member or group of an action profile."""

    action_type: I32
    action_name: str | None = None
    action_data: list[bytes] | None = None
    mbr_handle: I32 | None = None
    grp_handle: I32 | None = None


@dataclass(slots=True)
class EntryLife:
    """Idle timeout and idle time."""

    timeout_ms: I32
    time_since_hit_ms: I32


@dataclass(slots=True)
class TableEntry:
    """One entry of a table."""

    match_key: list[MatchParam]
    options: AddEntryOptions
    entry_handle: I32
    action_entry: ActionEntry
    life: EntryLife | None = None


@dataclass(slots=True)
class Crc16Config:
    """The parameters of a CRC of 16 bits; the first three are their bits as signed numbers."""

    polynomial: I16
    initial_remainder: I16
    final_xor_value: I16
    data_reflected: bool
    remainder_reflected: bool


@dataclass(slots=True)
class Crc32Config:
    """The parameters of a CRC of 32 bits, as those of 16."""

    polynomial: I32
    initial_remainder: I32
    final_xor_value: I32
    data_reflected: bool
    remainder_reflected: bool


@dataclass(slots=True)
class ProfileMember:
    """A member of an action profile."""

    mbr_handle: I32
    action_name: str
    action_data: list[bytes]


@dataclass(slots=True)
class ProfileGroup:
    """A group of an action profile."""

    grp_handle: I32
    mbr_handles: list[I32]


@dataclass(slots=True)
class PortInfo:
    """A port of the switch."""

    port_num: I32
    iface_name: str
    is_up: bool
    extra: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SwitchInfo:
    """Which switch this is."""

    device_id: I64
    thrift_port: I32
    notifications_socket: str | None = None
    elogger_socket: str | None = None
    debugger_socket: str | None = None


@dataclass(slots=True)
class MirroringSession:
    """Where clones go: a port, a multicast group, or both."""

    port: I32 | None = None
    mgid: I32 | None = None


@dataclass(slots=True)
class Ouch:
    """Base of BMv2's exceptions, which all carry a code."""

    code: I32


class TableError(IntEnum):
    """Why a table or an action profile refuses."""

    TABLE_FULL = 1
    INVALID_HANDLE = 2
    EXPIRED_HANDLE = 3
    COUNTERS_DISABLED = 4
    METERS_DISABLED = 5
    AGEING_DISABLED = 6
    INVALID_TABLE_NAME = 7
    INVALID_ACTION_NAME = 8
    WRONG_TABLE_TYPE = 9
    INVALID_MBR_HANDLE = 10
    MBR_STILL_USED = 11
    MBR_ALREADY_IN_GRP = 12
    MBR_NOT_IN_GRP = 13
    INVALID_GRP_HANDLE = 14
    GRP_STILL_USED = 15
    EMPTY_GRP = 16
    DUPLICATE_ENTRY = 17
    BAD_MATCH_KEY = 18
    INVALID_METER_OPERATION = 19
    DEFAULT_ACTION_IS_CONST = 20
    DEFAULT_ENTRY_IS_CONST = 21
    NO_DEFAULT_ENTRY = 22
    INVALID_ACTION_PROFILE_NAME = 23
    NO_ACTION_PROFILE_SELECTION = 24
    IMMUTABLE_TABLE_ENTRIES = 25
    BAD_ACTION_DATA = 26
    NO_TABLE_KEY = 27
    ERROR = 100


class CounterError(IntEnum):
    """Why a counter refuses."""

    INVALID_COUNTER_NAME = 1
    INVALID_INDEX = 2
    ERROR = 3


class MeterError(IntEnum):
    """Why a meter refuses."""

    INVALID_METER_NAME = 1
    INVALID_INDEX = 2
    BAD_RATES_LIST = 3
    INVALID_INFO_RATE_VALUE = 4
    INVALID_BURST_SIZE_VALUE = 5
    ERROR = 6


class RegisterError(IntEnum):
    """Why a register refuses."""

    INVALID_REGISTER_NAME = 1
    INVALID_INDEX = 2
    ERROR = 3


class MulticastError(IntEnum):
    """Why the replication engine refuses."""

    TABLE_FULL = 1
    INVALID_MGID = 2
    INVALID_MGRP_HANDLE = 3
    INVALID_L1_HANDLE = 4
    ERROR = 5


class MirroringError(IntEnum):
    """Why a mirroring session is refused."""

    SESSION_NOT_FOUND = 1


class CrcError(IntEnum):
    """Why the parameters of a CRC are refused."""

    INVALID_CALCULATION_NAME = 1
    WRONG_TYPE_CALCULATION = 2
    INVALID_CONFIG = 3


class Refusal(Exception):
    """A call that is refused with a code of BMv2's."""

    def __init__(self, code: IntEnum) -> None:
        super().__init__(code.name)
        self.code = code


class CallError(Exception):
    """A call that the switch cannot serve; the message is one line."""

    def __init__(self, text: str, code: int = INTERNAL_ERROR) -> None:
        super().__init__(text)
        self.code = code


Data = list[bytes]
Key = list[MatchParam]


class Part:
    """Some methods of a service, without `_` in front; their annotations are the wire's types.

    `codes` is the enumeration of their exception's code; with a context the first argument is its
    number.
    """

    codes: ClassVar[type[IntEnum] | None] = None
    has_context: ClassVar[bool] = True
