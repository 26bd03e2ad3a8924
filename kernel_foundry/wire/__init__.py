"""The border between domain values and protobuf messages."""
