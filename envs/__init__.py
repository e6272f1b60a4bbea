"""Contains the environments: one folder per family, each with its own prompts, rewards and data.

This folder is the package ``visenv.envs``. It imports the core, but not ``visenv.policies`` or
``visenv.algos``; ``visenv.registration`` reads the manifests of the families.
"""

if __name__ != "visenv.envs":
    raise ImportError("import visenv.envs, not envs: this folder is that package")
