"""The training of memoriter-embed-1: data, teachers, training, export and evaluation.

Not part of the installed package. Start with README.md; `python -m lab.training --help` lists the steps.
"""
