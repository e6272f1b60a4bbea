"""Runs a command of visenv: ``python -m visenv`` is the same as ``visenv``.

``accelerate launch -m visenv train ...`` starts one such process for each GPU.
"""

from visenv.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
