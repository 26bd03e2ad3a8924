"""The live page: a server for this machine's browsers alone, over the archive's event stream."""
