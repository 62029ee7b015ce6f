"""The version of the contract for callers that run a program's machine code by its address.

The contract is docs/decisions/machine-code-contract.md: the functions, their arguments and results,
the life of addresses. A change of any of it raises VERSION; a caller names the version that it is
written for, and calls no other.
"""

VERSION = 2
