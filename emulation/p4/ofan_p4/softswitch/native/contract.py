"""The version of the contract for callers that run a program's machine code by its address.

What it says is in docs/decisions/machine-code-contract.md: the functions, the words that they
are given, what they answer, how long addresses are good. Whoever changes any of it raises VERSION;
a caller names the version that it is written for, and calls no other.
"""

VERSION = 2
