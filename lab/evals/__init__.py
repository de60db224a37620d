"""Evaluations of retrieval on labelled sets, through the public `Memory`.

They are not part of the installed package. `python -m lab.evals --help` lists the commands, and `README.md` explains
the figures.
"""
