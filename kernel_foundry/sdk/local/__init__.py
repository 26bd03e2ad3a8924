"""The three services in this process. The only folder that imports them, each when it is asked."""
