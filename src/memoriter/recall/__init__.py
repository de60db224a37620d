"""Recall: the text that is added to an agent's prompt."""
