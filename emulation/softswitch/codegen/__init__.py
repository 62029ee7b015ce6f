"""From BMv2 JSON to Python source: `loading` reads it, `assembly` makes two functions of it."""
