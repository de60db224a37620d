"""How fast is memoriter? Speed and size, beside sqlite-vec's own KNN and plain FTS5, in one run.

Not part of the installed package. `python -m bench` runs everything; `docs/benchmarks.md` holds a run's tables.
"""
