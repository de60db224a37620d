"""Measurements, training and the soak: what the project runs on the package and does not ship."""
