"""Simulators: worlds with a state, in this process or in a child with another interpreter.

`SimulatorPool` lends hosts; a host runs one simulator. What a simulator must have is written in
`visenv.simulators.protocol`, and how one is chosen an interpreter in `visenv.simulators.settings`.
"""
