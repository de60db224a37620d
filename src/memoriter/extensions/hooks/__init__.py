"""Hooks of all hosts: `hook` is the entry point of `memoriter hook`, `worker` guarantees an answer in time, `events`
builds the answer, and `capture` processes sessions afterwards. `host` defines what differs from host to host.

The command line names events as Claude Code does, whatever the host calls them.
"""
