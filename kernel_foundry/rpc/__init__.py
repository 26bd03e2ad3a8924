"""The three ports over gRPC: server, clients and the mapping of errors between them."""
