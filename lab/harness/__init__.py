"""memoriter in other projects' harnesses: adapters, and `python -m lab.harness` to try each on a small part."""
