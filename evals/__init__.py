"""How well does memoriter find things? Scores retrieval on labelled sets through the public `Memory`.

Not part of the installed package. `python -m evals --help` says how to run it, `README.md` what the figures mean.
"""
