"""Runs simulators, which are worlds with a state, in this process or in a child interpreter.

`SimulatorPool` lends hosts; a host runs one simulator. `visenv.simulators.protocol` defines the
interface of a simulator, and `visenv.simulators.settings` how its interpreter is chosen.
"""
