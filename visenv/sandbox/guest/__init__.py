"""Contains the code of the sandbox's server process: standard library and relative imports only.

The server is a new interpreter that loads this package by its folder, not as a part of visenv.
Nothing of visenv (rewards, configuration, secrets) is ever in its memory.

======================  ======================================================================
`main`                  the start of the server, and the first message to the client
`preload`               imports packages once, and the rules for the pixels of an output image
`probe`                 the layers of isolation that this machine has
`libraries`             the files that a program may read: only those of the interpreter
`namespaces`, `root`    the layers that make the host invisible, and directories without them
`landlock`, `seccomp`   the layers that refuse everything not listed
`lockdown`              applies all layers to a process, in the right order
`server`                forks a cell for each program, kills and reaps it
`cell`                  the forked process: waits, restricts itself, runs, reports
`program`               runs the code; its traceback and its output image
`wire`                  the messages between client, server and cell
`kernel`, `syscalls`    Linux calls without a Python function, and their numbers
======================  ======================================================================
"""
