"""The native back end: the two functions of a program as machine code.

`codegen` turns a program into nodes, which are printed as Python or, here, translated node by node
into LLVM IR and compiled in memory. So there is one generator, and both engines do the same;
`missing_rules` names the nodes without machine code.
"""
