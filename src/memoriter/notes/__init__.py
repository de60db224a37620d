"""The notes of a workspace: reading, chunking and watching them, and writing new ones.

``workspace`` lists and reads notes, ``chunking`` splits them for the index, ``watch`` reports changes, and
``collection`` is `memory.notes`. ``notebook`` writes notes, ``summary`` and ``flush`` write what a session said, and
``agent_folder`` lets an agent edit its own notes.
"""
