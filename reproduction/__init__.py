"""The study: the paper's figures and claims, and those beyond it, made again and judged.

`theory` has the paper's formulas, `report` the page, its claims and its statistics, `figures` a
module for each figure. Nothing of ours imports it but the command.
"""
