"""The results of a run: its record, the columns of all results, and tables of them."""
