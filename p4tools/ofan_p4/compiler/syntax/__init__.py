"""Text to syntax tree: lexer, parser and the nodes they produce."""
