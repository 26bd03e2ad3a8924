"""Transport options that both sides of a connection must agree on."""

MESSAGE_LIMIT_BYTES = 64 * 1024 * 1024
"""Bytes of one request or response: 64 elites with 64 KiB logs and all samples stay well below."""

REQUEST_FIELD_LIMIT = 1 << 19
"""Fields of one request with all its messages: the graph of a large model on six workloads has
half as many. A service reads them in about half a second, and answers nobody meanwhile."""

RESPONSE_FIELD_LIMIT = 1 << 21
"""Fields of one response: a hundred verdicts on many workloads."""

ERROR_TEXT_LIMIT = 4096
"""Characters of an error's message, and of each of its metadata values, on the wire."""

_METADATA_LIMIT_BYTES = 128 * 1024
# Errors travel in HTTP/2 trailers, which gRPC cuts the connection for above 8 to 16 KiB.

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.max_metadata_size", _METADATA_LIMIT_BYTES),
    ("grpc.absolute_max_metadata_size", _METADATA_LIMIT_BYTES),
    # gRPC bounds what arrives, not what it expands to: a megabyte may become a gigabyte. Bit 0 is
    # "identity", which alone is left; a compressed request is answered UNIMPLEMENTED.
    ("grpc.compression_enabled_algorithms_bitset", 1),
)
"""Options of servers and channels alike."""
