"""The builder process: a candidate's text in, object code out, locked in all the while."""
