"""What exported winners give in whole models."""
