"""Syntax tree to typed tree: names resolved, types checked, generics inferred, constants folded."""
