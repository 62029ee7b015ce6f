"""The size that a Parquet file promises to unpack to, from its footer, before it is unpacked.

    file      = "PAR1" pages footer LENGTH "PAR1"       LENGTH: 4 bytes, of the footer
    footer    = a struct of Thrift's compact protocol: 4 = list of row groups
    row group = struct: 1 = list of columns
    column    = struct: 3 = struct: 5 = values, 6 = bytes of all pages, unpacked

A page of equal values has a few bytes however many they are, so that values count, too.
"""

from collections.abc import Iterator

MAGIC = b"PAR1"
LENGTH_BYTES = 4
# Ours have some kilobytes.
MOST_FOOTER_BYTES = 4 << 20
# Of a number; of a text beside the text itself.
VALUE_BYTES = 8
DEEPEST = 16

# Types of the compact protocol.
BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 3, 7, 8, 9, 10, 11, 12
BOOLS = (1, 2)
WHOLE = (4, 5, 6)
ROW_GROUPS, COLUMNS, METADATA, VALUES, UNPACKED = 4, 1, 3, 5, 6


def unpacked_bytes(content: bytes) -> int:
    """Return about how many bytes a file's table takes; raises ValueError for no such file."""
    end = len(content) - len(MAGIC) - LENGTH_BYTES
    length = int.from_bytes(content[end : end + LENGTH_BYTES], "little") if end > 0 else 0
    if not content.startswith(MAGIC) or not content.endswith(MAGIC) or not 0 < length <= end:
        raise ValueError("no Parquet, or cut short")

    if length > MOST_FOOTER_BYTES:
        raise ValueError(f"its footer has more than {MOST_FOOTER_BYTES >> 20} MiB")

    try:
        return _Footer(content[end - length : end]).total()
    except IndexError:
        raise ValueError("no Parquet, or a damaged footer") from None


class _Footer:
    """A footer, read from front to end; raises IndexError where it is none."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def total(self) -> int:
        """Return the bytes that all columns of all row groups promise."""
        return sum(self._column() for _ in self._within(ROW_GROUPS) for _ in self._within(COLUMNS))

    def _column(self) -> int:
        promised = 0
        for field, kind in self._fields():
            if field != METADATA or kind != STRUCT:
                self._skip(kind)
                continue

            for inner, inner_kind in self._fields():
                if inner in (VALUES, UNPACKED) and inner_kind in WHOLE:
                    # A file that promises less than nothing promises nothing right.
                    promised += max(self._number(), 0) * (VALUE_BYTES if inner == VALUES else 1)
                else:
                    self._skip(inner_kind)

        return promised

    def _within(self, field_id: int) -> Iterator[None]:
        """Yield before each struct of the list in field `field_id`; skip all other fields."""
        for field, kind in self._fields():
            if field != field_id or kind != LIST:
                self._skip(kind)
                continue

            count, inner = self._head()
            for _ in range(count):
                if inner == STRUCT:
                    yield
                else:
                    self._skip(inner, in_list=True)

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield the numbers and types of a struct's fields, each of which must be read then."""
        field = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            field = field + delta if delta else self._number()
            yield field, kind

    def _skip(self, kind: int, depth: int = 0, in_list: bool = False) -> None:
        if depth > DEEPEST:
            raise IndexError

        if kind in BOOLS:
            # Of a field its type is its value.
            self._at += in_list
        elif kind in WHOLE:
            self._varint()
        elif kind in (BYTE, DOUBLE):
            self._at += 1 if kind == BYTE else 8
        elif kind == BINARY:
            length = self._varint()
            self._at += length
        elif kind == STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        else:
            self._skip_many(kind, depth)

    def _skip_many(self, kind: int, depth: int) -> None:
        if kind in (LIST, SET):
            count, *kinds = self._head()
        elif kind == MAP:
            count = self._varint()
            both = self._byte() if count else 0
            kinds = [both >> 4, both & 15]
        else:
            raise IndexError

        for _ in range(count):
            for inner in kinds:
                self._skip(inner, depth + 1, in_list=True)
            # Values that take no bytes could be any number.
            if self._at > len(self._content):
                raise IndexError

    def _head(self) -> tuple[int, int]:
        head = self._byte()
        count, kind = head >> 4, head & 15
        return (self._varint() if count == 15 else count), kind

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

            if shift > 63:
                raise IndexError

    def _byte(self) -> int:
        byte = self._content[self._at]
        self._at += 1
        return byte
