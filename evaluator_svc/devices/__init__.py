"""The devices of a host: found, held, measured, shared out."""
