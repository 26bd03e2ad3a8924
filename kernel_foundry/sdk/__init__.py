"""The Python SDK: `client.connect`, and the code behind it to run, watch, verify and report."""
