"""Where do memories come from?

From the Markdown files of a workspace, and from the transcripts that sessions leave behind: listed by their stat,
read safely, whatever their bytes are.
"""
