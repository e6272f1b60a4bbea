"""Decodes files and bytes of other people within limits.

Libraries that decode PDF, video, Parquet and chat templates run in child processes with limits of
memory and processor time (`visenv.decoding.decoder`, `visenv.decoding.child`). Images and JSON are
decoded in this process, after their size has been checked.
"""
