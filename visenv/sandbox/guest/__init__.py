"""Contains the code of the sandbox's server process: standard library and relative imports only.

The server is a new interpreter that loads this package by its folder, not as a part of visenv.
Nothing of visenv (rewards, configuration, secrets) is ever in its memory.

======================  ===========================================================
`main`                  the order of start-up, and the first message to the client
`preload`               what is imported once
`probe`                 which layers of isolation this machine grants
`libraries`             which files a program may read: the interpreter's, no others
`namespaces`, `root`    the layers that make the host invisible
`landlock`, `seccomp`   the layers that refuse what is not named
`scratch`               directories for programs where there are no namespaces
`lockdown`              a process puts all of them on itself, in the one right order
`server`                forks a cell for each program, reaps and kills
`cell`                  the life of a forked process: wait, lock, run, report
`program`               running the code, its traceback, the image it wrote
`wire`                  the messages between client, server and cell
`kernel`, `syscalls`    Linux calls Python has no name for, and their numbers
======================  ===========================================================
"""
