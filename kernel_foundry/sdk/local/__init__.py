"""The three services in this process. Only this folder imports them, each at its first use."""
