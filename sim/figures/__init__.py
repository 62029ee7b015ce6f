"""The paper's figures, one module each; `sim.report.contents` lists them."""
