"""One run: the engine, its threads, and its results."""
