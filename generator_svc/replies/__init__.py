"""A model's reply becomes a candidate's source, or a reason that helps with a second try."""
