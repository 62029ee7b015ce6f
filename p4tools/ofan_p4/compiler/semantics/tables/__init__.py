"""Tables: each module types one part of a table, and `table` puts the parts together."""
