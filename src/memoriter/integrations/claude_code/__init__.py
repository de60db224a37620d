"""Hosts that start a program for every moment: they tell it on standard input what happens, and read its answer.

`process` sees to it that there is always an answer in time, `claude_code` says what the answer is, and `hearing` what
is learned after it.
"""
