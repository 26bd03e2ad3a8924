"""Inputs and parameters of unusual values, which show what ordinary ones hide."""
