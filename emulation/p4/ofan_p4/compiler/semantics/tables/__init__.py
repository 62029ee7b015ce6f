"""Tables: `table` puts together what the others type, one part of a table each."""
