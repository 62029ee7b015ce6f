"""The native back end: the two functions of a program as machine code.

`codegen` turns a program into nodes, which are printed as Python or, here, translated one by one
into LLVM IR and compiled in memory. So there is one generator, and what the Python engine does is
what the native one does; `missing_rules` names what it cannot take.
"""
