"""The legend of generated code: every name that the generator makes, and its meaning.

People read generated code only when something is wrong, and then short names need an explanation;
`docs/generated-ofan.py.txt` is a sample with this legend at its top. The generator and all readers
of its code take the names from here, so the legend is always right.

Everything about a packet is a local variable, because Python reads nothing else as fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A name and its meaning; `<...>` in the name stands for a number."""

    name: str
    meaning: str

    @property
    def pattern(self) -> str:
        """The regular expression that the name's instances match."""
        return re.sub(r"<\w+>", r"\\d+", self.name)


# Arguments of `ingress` and `egress`.
DATA = "data"
PORT = "port"
PACKET_LENGTH = "length"
NOW = "now"
RESUME = "resume"
STATE = "state"
PRIORITY = "priority"
INSTANCE = "instance"
RID = "rid"
ENQ_US = "enq_us"
ENQ_DEPTH = "enq_depth"
DELTA_US = "delta_us"
DEQ_DEPTH = "deq_depth"

# The packet between parser and deparser.
SIZE = "n"
GROWTH = "d"
POSITION = "o"
PARSER_ERROR = "perr"
CUTOFF = "cutoff"
EXITED = "x"
FRAME = "frame"

# Requests to the switch.
CLONE = "cl"
DIGEST = "dg"
RESUBMIT = "rs"
RECIRCULATE = "rc"
REQUESTS = "sp"

# Temporaries. One letter may serve several of them, never at the same time.
WIDTH = "w"
BLOCK = "q"
ENTRY = "e"
ACTION = "a"
HIT = "hit"
KEY = "k"
MASK = "m"
LEVEL = "t"
VALUE = "w"
BOUND = "w"
RANK = "z"
CANDIDATE = "c"
CELL = "c"
RESULT = "r"
RECORD = "r"
INDEX = "i"
REPEAT = "_"

# Names that the switch lends to the code.
DROP = "DROP"
RANDOM = "random"
TRACE = "trace"
LOG = "log"
FOLD = "fold"
WORDS = "words"
JOIN_BITS = "join_bits"
DIV = "div"
MOD = "mod"
WRAP = "wrap"
SATURATE = "saturate"
SATURATE_SIGNED = "saturate_signed"
SHIFT_LEFT = "shift_left"
SHIFT_RIGHT = "shift_right"
ARITHMETIC = (DIV, MOD, WRAP, SATURATE, SATURATE_SIGNED, SHIFT_LEFT, SHIFT_RIGHT)


def field(header: int, index: int) -> str:
    """Return the variable of a field."""
    return f"f{header}_{index}"


def valid(header: int) -> str:
    """Return the variable of a header's validity."""
    return f"v{header}"


def raw(header: int) -> str:
    """Return the variable of the bytes of a header that nothing modifies."""
    return f"h{header}"


def opaque(header: int, index: int) -> str:
    """Return the variable of neighbouring fields that stay bytes."""
    return f"o{header}_{index}"


def next_element(stack: int, of_unions: bool) -> str:
    """Return the variable of the index of a stack's next element."""
    return f"n{'u' if of_unions else 's'}{stack}"


def parameter(index: int) -> str:
    """Return the variable of an action's argument."""
    return f"p{index}"


def peeked(index: int) -> str:
    """Return the variable of a part of a transition key that the parser has looked ahead for."""
    return f"k{index}"


def packed(index: int) -> str:
    """Return the variable of an integer that holds several fields side by side."""
    return f"t{index}"


def low(index: int) -> str:
    """Return the variable of the lower end of a row's range."""
    return f"l{index}"


def high(index: int) -> str:
    """Return the variable of the upper end of a row's range."""
    return f"u{index}"


def values_of(request: str) -> str:
    """Return the variable of the values that go with a request."""
    return f"{request}v"


def register(array: int) -> str:
    """Return the name of a register array."""
    return f"R{array}"


def counter(array: int) -> str:
    """Return the name of a counter array."""
    return f"C{array}"


def meter(array: int) -> str:
    """Return the name of a meter array."""
    return f"M{array}"


def profile(number: int) -> str:
    """Return the name of an action profile."""
    return f"P{number}"


def value_set(number: int) -> str:
    """Return the name of a parser value set."""
    return f"V{number}"


def custom_crc(number: int) -> str:
    """Return the name of a CRC with parameters."""
    return f"H{number}"


def entries(table: int) -> str:
    """Return the name of the object in which a table's entries are searched."""
    return f"T{table}"


def levels(table: int) -> str:
    """Return the name of a table's entries by mask."""
    return f"L{table}"


def default(table: int) -> str:
    """Return the name of the list with a table's default entry as its only item."""
    return f"D{table}"


def constant(number: int) -> str:
    """Return the name of an object that is fixed when the code is generated."""
    return f"K{number}"


# These travel from ingress to egress, and from the original to its copies.
PACKET_STATE = (
    Term("f<H>_<F>", "field F of header or struct H: a number, or the bytes of a varbit"),
    Term("v<H>", "1 while header H is valid, else 0"),
    Term("h<H>", "the bytes of header H, which nothing modifies; empty while it is not valid"),
    Term("o<H>_<F>", "the bytes of the fields of header H from F on that nothing reads or writes"),
    Term("ns<S>", "index of the next element of header stack S"),
    Term("nu<S>", "index of the next element of header union stack S"),
    Term(CUTOFF, "the most bytes that the frame keeps, after truncate"),
)
ARGUMENTS = (
    Term(DATA, "the bytes of the frame that came in"),
    Term(PORT, "the port that it came from, in egress the port that it goes to"),
    Term(PACKET_LENGTH, "its length as the program sees it"),
    Term(NOW, "picoseconds since the switch started"),
    Term(RESUME, "None for a fresh packet, else (instance type, field list, values of the list)"),
    Term(STATE, f"{DATA}, {POSITION} and the variables that egress reads, as ingress left them"),
    Term(PRIORITY, "the queue that the packet was in"),
    Term(INSTANCE, "the instance type: 0 normal, 1 and 2 clones, 4 recirculated, 5 replica, ..."),
    Term(RID, "which replica of a multicast group or clone session this is"),
    Term(ENQ_US, "when the packet was enqueued, in microseconds"),
    Term(ENQ_DEPTH, "how many packets were before it"),
    Term(DELTA_US, "how long it has waited, in microseconds"),
    Term(DEQ_DEPTH, "how many packets it left behind"),
)
OBJECTS = (
    Term("R<N>", "the cells of register array N"),
    Term("C<N>", "the cells of counter array N, each [packets, bytes]"),
    Term("M<N>", "the cells of meter array N"),
    Term("P<N>", "action profile N"),
    Term("V<N>", "parser value set N"),
    Term("H<N>", "CRC N of those whose parameters the control plane sets"),
    Term("T<N>", "table N: a lookup (exact), (mask, dict) per prefix length (lpm), or its rows"),
    Term("L<N>", "table N by mask: (best rank, mask, lookup); empty where rows are tried in order"),
    Term("D<N>", "a list whose only item is the default entry of table N"),
    Term("K<N>", "a constant: a struct's method, a hash, a text, or a point of the program"),
    Term(DROP, "the egress_spec that means drop"),
    Term(RANDOM, "draws an integer between two others, both included"),
    Term(TRACE, "takes a point of the program and the values there (traced code only)"),
    Term(LOG, "takes the text of a log_msg and its values"),
    Term(FOLD, "the Internet checksum of a sum of 16-bit words"),
    Term(WORDS, "bytes as a number with the same checksum"),
    Term(JOIN_BITS, "(present, value, width) parts as bytes"),
    Term(DIV, "the quotient rounded towards zero; 0 by zero"),
    Term(MOD, "the remainder with the sign of the dividend; 0 by zero"),
    Term(WRAP, "a number as two's complement of so many bits"),
    Term(SATURATE, "a number limited to so many unsigned bits"),
    Term(SATURATE_SIGNED, "a number limited to so many signed bits"),
    Term(SHIFT_LEFT, "<< by an amount of any size"),
    Term(SHIFT_RIGHT, ">> by an amount of any size"),
)
VARIABLES = (
    Term(SIZE, "the number of bytes that came in"),
    Term(GROWTH, "how many bytes the packet has grown by since: added less removed headers"),
    Term(POSITION, "how many bytes the parser has consumed"),
    Term(PARSER_ERROR, "the code of the parser's error, NoError's for none"),
    Term(EXITED, "1 after exit"),
    Term("p<I>", "argument I of the action"),
    Term("k<I>", "part I of a transition key, looked ahead for"),
    Term("t<I>", "fields of a header side by side in one number, as struct has read it"),
    Term(ENTRY, "the entry that a lookup found: (action, arguments, record), None on a miss"),
    Term(ACTION, "the number of the action to run"),
    Term(HIT, "whether the lookup found an entry of the table"),
    Term(KEY, "the fields of a key side by side in one number"),
    Term(MASK, "the mask of a row, a prefix length or a level"),
    Term(LEVEL, "the entries, or the lookup, of one mask"),
    Term(VALUE, "a row's value; the best rank in a level; a variable length in bits or bytes"),
    Term("l<I>", "lower end of range I of a row"),
    Term("u<I>", "upper end of range I of a row"),
    Term(RANK, "the rank of the best entry so far: the lower, the earlier"),
    Term(CANDIDATE, "a row's entry; a level's (rank, entry); a cell of a counter"),
    Term(
        RESULT,
        "what random or a meter has returned; an entry's record; what a large stack is to store",
    ),
    Term(INDEX, "the index into a header stack"),
    Term(BLOCK, "the number of the next block, in a graph that does not nest; 0 at the end"),
    Term(REPEAT, "counts the steps of a graph with a cycle"),
    Term(CLONE, "the clone asked for: (session, field list) or None"),
    Term(DIGEST, "the digest asked for, or None"),
    Term(RESUBMIT, "the field list of the resubmission asked for, or None"),
    Term(RECIRCULATE, "the field list of the recirculation asked for, or None"),
    *(
        Term(values_of(request), f"the values that go with {request}")
        for request in (CLONE, DIGEST, RESUBMIT, RECIRCULATE)
    ),
    Term(REQUESTS, "all requests with their values (see `requests`), or None"),
    Term(FRAME, "the bytes that leave"),
)
LEGEND: Mapping[str, tuple[Term, ...]] = {
    "State of the packet": PACKET_STATE,
    "Arguments": ARGUMENTS,
    "Variables": VARIABLES,
    "Objects of the switch": OBJECTS,
}


def legend() -> Iterator[str]:
    """Yield the legend as lines of text."""
    for title, terms in LEGEND.items():
        yield f"{title}:"
        yield from (f"  {term.name:<16} {term.meaning}" for term in terms)
