"""Task files of other projects, read and written as task files of ours.

`formats.py` lists the formats, one file each; `entry.py` is what they give, `writing.py` puts it
into a folder. Nothing of a suite is executed here.
"""
