"""Processes of ours and how to talk to them: started, locked in, watched, asked, ended."""
