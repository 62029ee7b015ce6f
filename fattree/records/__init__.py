"""What a run leaves: its record, the columns of all results, and tables of them."""
