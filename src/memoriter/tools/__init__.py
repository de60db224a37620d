"""The tools that agents call, and the operations that hosts and owners call by name."""
