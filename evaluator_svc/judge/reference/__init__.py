"""What is known of a reference: its module, arguments, names, graph, costs."""
