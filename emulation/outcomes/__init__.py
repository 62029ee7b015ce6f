"""What a run has shown: one type for all networks, its folder, tables, pictures, comparisons."""
