"""The client side of the resident process, which keeps the memories of one home open for hooks and commands.

`calls` decides what is passed to the process, `client` finds, starts and asks it. `server.resident` is the other side.
"""
