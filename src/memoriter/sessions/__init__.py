"""Session transcripts: what was said, by whom, and how far it has been processed.

``messages``, ``passages`` and ``transcripts`` read transcripts for the index. ``queue``, ``progress``, ``tail`` and
``seen_turns`` are for hosts that start a new process for every event or that send the whole conversation each time.
They store positions and digests, never text of a conversation. ``scope`` decides which sessions may use the memory.
"""
