"""The resident process, which keeps the memories of one home open for hooks and commands, and its clients.

`command_line` reads what was typed, `calls` decides what is passed to the process, `client` finds, starts and asks it:
these three import almost nothing. `server` is the process, `service` what it does, `commands` shows and stops it.
"""
