"""The bytes of a frame that a program's parser can look at."""

from __future__ import annotations

from ofan_p4.softswitch.codegen.program import Header, Json, ParseState, Program


def most_bytes(header: Header) -> int:
    """Return the most bytes that a header can have."""
    return max(header.bytes, header.max_bytes)


def deparsed_bytes(program: Program) -> int:
    """Return the most bytes that the deparser may write before the payload."""
    return sum(most_bytes(program.headers[index]) for index in program.deparse_order)


def looked_ahead(program: Program, beyond: int) -> int:
    """Return how many bytes behind its position the parser looks at, at most.

    States that look at nothing behind the frame's first `beyond` bytes are left out.
    """
    states = program.parser.states
    order = _order(program)
    if order is None:
        return max(map(_looked_ahead, states.values()), default=0)

    position = dict.fromkeys(order, 0)
    longest = 0
    for name in reversed(order):
        state = states[name]
        end = position[name] + sum(_consumed(program, op) or 0 for op in state.ops)
        for target in _targets(state):
            position[target] = max(position[target], end)

        if end + _looked_ahead(state) > beyond:
            longest = max(longest, _looked_ahead(state))

    return longest


def parsed_bytes(program: Program) -> int | None:
    """Return the most bytes on any way through the parser, None where that has no bound."""
    states = program.parser.states
    order = _order(program)
    if order is None:
        # Round a cycle only elements of stacks are new; without a stack nothing ends it.
        if not program.stacks and not program.union_stacks:
            return None

        consumed = sum(most_bytes(header) for header in program.headers if not header.is_metadata)
        return consumed + max(map(_looked_ahead, states.values()), default=0)

    longest: dict[str, int] = {}
    for name in order:
        state = states[name]
        sizes = [_consumed(program, op) for op in state.ops]
        if None in sizes:
            return None

        # The states that follow come first in the order: their longest ways are known.
        following = [longest[target] for target in _targets(state)]
        longest[name] = sum(size or 0 for size in sizes) + max([_looked_ahead(state), *following])

    return longest[program.parser.start]


def _targets(state: ParseState) -> list[str]:
    targets = (transition.get("next_state") for transition in state.transitions)
    return [target for target in targets if target is not None]


def _order(program: Program) -> list[str] | None:
    """Return the states that can be reached, each behind those that follow it; None: a cycle."""
    states = program.parser.states
    done: dict[str, bool] = {}
    # Every state twice: when it is found, and when all that follow it are done.
    todo = [(program.parser.start, False)]
    while todo:
        name, is_through = todo.pop()
        if is_through:
            done.pop(name)
            done[name] = True
            continue

        if name in done:
            if not done[name]:
                return None
            continue

        # Reached and not done: a second visit has gone round a cycle.
        done[name] = False
        todo.append((name, True))
        todo += [(target, False) for target in _targets(states[name]) if not done.get(target)]

    return list(done)


def _consumed(program: Program, op: Json) -> int | None:
    """Return the most bytes that an operation consumes, None where the packet decides."""
    parameters = op["parameters"]
    match op["op"]:
        case "extract" | "extract_VL":
            return _extracted(program, parameters[0])
        case "shift":
            return int(parameters[0])
        case "advance":
            bits = parameters[0]
            return int(bits["value"], 16) // 8 if bits.get("type") == "hexstr" else None

    return 0


def _extracted(program: Program, target: Json) -> int:
    if target["type"] == "regular":
        return most_bytes(program.header(target["value"]))
    if target["type"] == "stack":
        return most_bytes(program.headers[program.stacks[target["value"]].elements[0]])

    return max(map(most_bytes, program.headers), default=0)


def _looked_ahead(state: ParseState) -> int:
    """Return how many bytes behind those that it consumes a state looks at, at most."""
    items = [*state.key, *(part for op in state.ops for part in op["parameters"])]
    ends = [
        (item["value"][0] + item["value"][1] + 7) // 8
        for item in items
        if isinstance(item, dict) and item.get("type") == "lookahead"
    ]
    return max(ends, default=0)
