"""Connects visenv to other trainers (TRL and verl), and converts episodes to their formats.

Import the subpackage of the trainer that is installed. docs/plug_ins.md describes the ways to use
them.
"""
