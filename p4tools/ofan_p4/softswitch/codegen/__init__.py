"""From BMv2 JSON to nodes, and from these to Python source.

`loading` reads the JSON, `assembly` makes the statements of two functions of it, `printing` prints
them in Python. `native` makes machine code of the same nodes.
"""
