"""The border between domain values and protobuf messages. Knows nothing of grpc."""
