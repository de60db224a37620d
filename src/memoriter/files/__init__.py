"""Safe reading, atomic writing and locks.

- ``durable``: atomic replacement of state files
- ``edits``: changes of notes that people may edit at the same time
- ``locks``: one lock between threads and processes
- ``platform``: differences between systems
- ``paths``: open files and folders below a root, without following links
- ``scan``: list the files of a folder tree
- ``shared``: folders that several machines share
"""
