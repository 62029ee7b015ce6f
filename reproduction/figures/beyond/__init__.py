"""Figures beyond the paper, one module each; `report.contents` lists them."""
