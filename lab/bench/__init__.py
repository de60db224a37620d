"""Benchmarks: speed and size of memoriter, compared with sqlite-vec and plain FTS5 in one run.

Not part of the installed package. `python -m lab.bench` runs everything. `lab/benchmarks.md` has the tables of
one run.
"""
