"""What was said that has not been taken in yet?

A host that starts a process for every moment has no memory between them. This room gives it one: marks that say how
far each session was heard, and a spool of sessions that wait to be heard. Of hosts that hand over whole conversations
each time, `heard` knows the turns that were taken in. None of them holds a word of what was said. What is learned from
it is not decided here.
"""
