"""Externs of core.p4 and v1model: `dispatch` finds the handler of a call, the others hold them."""
