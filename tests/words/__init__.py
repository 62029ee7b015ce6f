"""Words that make a reader guess: counted in names, docstrings and comments, room by room."""
