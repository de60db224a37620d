"""Which pieces answer this query?

A keyword leg and a vector leg each propose chunks with a value between 0 and 1; `fuse` makes one score of them whose
parts are kept; `rank` ages, thresholds and spreads; `search` joins them and cuts the snippets.
"""

from memoriter.search.search import Found, Options, Searcher

__all__ = ["Found", "Options", "Searcher"]
