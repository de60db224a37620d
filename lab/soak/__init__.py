"""The soak: kills, power cuts, faults, damage, erasure, fuzzing and mutation, for hours. `make soak` runs it.

Every part counts what it did and what went wrong, and has a control that must go wrong.
"""
