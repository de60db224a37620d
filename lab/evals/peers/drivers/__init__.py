"""Programs that run inside a peer's environment: index a workspace, then answer queries.

Requests and answers are lines of JSON on stdin and stdout:

    {"op": "start"}                                 → {}, once everything is loaded
    {"op": "index"}                                 → {}
    {"op": "search", "query": "…", "limit": 30}     → {"paths": ["memory/a.md", …]}

An answer `{"error": "…"}` ends the run of this peer.
"""
