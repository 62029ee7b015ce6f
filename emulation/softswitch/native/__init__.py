"""The native back end: the two functions of a program as machine code.

`codegen` turns a program into two Python functions, which are run as they are or, here, translated
statement by statement into LLVM IR and compiled in memory. So there is one generator, and what the
Python engine does is what the native one does; `translate` says what it cannot take.
"""
