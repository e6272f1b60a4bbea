"""The environments: one folder per family, each with its own prompts, rewards and data.

This folder is the package ``visenv.envs``. It imports the core, never ``visenv.policies`` or
``visenv.algos``; ``visenv.registration`` names what is in it by strings.
"""

if __name__ != "visenv.envs":
    raise ImportError("import visenv.envs, not envs: this folder is that package")
