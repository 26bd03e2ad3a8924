"""The Python SDK: `client.connect` and what it needs to run, watch, verify and report."""
