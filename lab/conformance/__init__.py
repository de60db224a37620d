"""Other projects' own test suites, run against memoriter: `make conformance`, or `python -m lab.conformance SUITE`.

The tests are downloaded when a suite runs, and they stay as they are. A module of this folder replaces only the class
that they test by ours. `__main__` prints one table: suite, version, passed, failed, why.
"""
