"""`kfoundry import`: task files of other projects, read and written as task files of ours.

`formats.py` lists the formats, one file each; `entry.py` is what they give, `writing.py` puts it
into a folder. Nothing of another project is executed here. Many tasks are optimised as one job in
`sdk/suite`.
"""
