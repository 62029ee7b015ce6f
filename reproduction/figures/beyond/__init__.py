"""Figures of what is beyond the paper, one module each; `report.contents` lists them."""
