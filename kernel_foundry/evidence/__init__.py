"""The record of a verdict, its canonical bytes and its digest; checked in `sdk.verification`."""
