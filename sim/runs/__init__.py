"""One run: the engine, its threads, and what a run has come to."""
