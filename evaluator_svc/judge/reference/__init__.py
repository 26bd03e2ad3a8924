"""What is known of a reference: its module, arguments, names, formats, operators."""
