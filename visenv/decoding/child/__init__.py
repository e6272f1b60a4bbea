"""Contains the decoders that run in a child process.

A child does not import visenv itself, so that it starts fast: these modules import only the
standard library, their own package, and the library that decodes.
"""
