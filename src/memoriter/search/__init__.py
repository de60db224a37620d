"""Search finds the chunks that answer a query.

`search` is the pipeline, `legs` propose and value chunks, `rank` scores and orders them, `rerank` reads the first ones,
`shape` chooses the hits, `when` reads days such as "yesterday", and `citations` formats hits for a prompt.
"""

from memoriter.search.search import Found, Options, Searcher

__all__ = ["Found", "Options", "Searcher"]
