"""Search finds the chunks that answer a query.

`search` is the pipeline, `rank` holds the legs and orders what they propose, `rerank` reads the first ones,
`shape` chooses the hits, `when` reads days such as "yesterday", and `citations` formats hits for a prompt.
"""

from memoriter.search.search import Found, Options, Searcher

__all__ = ["Found", "Options", "Searcher"]
