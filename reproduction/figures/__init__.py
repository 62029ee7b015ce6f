"""The paper's figures, one module each; `reproduction.report.contents` lists them."""
