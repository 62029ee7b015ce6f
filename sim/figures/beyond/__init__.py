"""Figures of what is beyond the paper, one module each; `sim.report.contents` lists them."""
