"""Other memories for agents, put through the same questions: `python -m lab.evals.peers --help`.

A peer is installed from its registry into an environment of its own and driven by a small program in `drivers/`, which
runs inside that environment. This package must import without memoriter, because the drivers import it.
"""
