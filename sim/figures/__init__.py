"""The paper's figures, one small module each: what is swept, how it is drawn, which claims it
decides (`sim.report.contents`).
"""
