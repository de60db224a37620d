"""What is the agent told now?"""
