"""From BMv2 JSON to Python source: `loading` reads it, `assembly` puts the two functions together."""
