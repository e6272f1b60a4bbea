"""Runs an object in a child process with limits, possibly in another Python interpreter.

`visenv.child_process.host.ChildProcess` is the host's side. Simulators and the decoders of foreign
files use it.
"""
