"""What `accelerate launch` starts in these tests.

Arguments: the toy's module, the folder of a real model or "", a folder for runs, and tasks.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType

import torch

from visenv.algos.trainer.processes import Processes

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.algos.distributed.gradients import check
from tests.algos.distributed.training import (
    die_while_saving_the_second,
    train,
    train_flat,
)


def load_toy(path: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location("toy", path)
    assert specification is not None
    assert specification.loader is not None
    module = sys.modules["toy"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def main() -> None:
    torch.set_num_threads(1)
    toy, model, folder = load_toy(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    for task in sys.argv[4:]:
        if task == "check":
            processes = Processes(timeout=120)
            assert processes.count == 2
            check(toy, model, processes)
        elif task == "hang":
            processes = Processes(timeout=3)
            if processes.first:
                processes.wait()
            time.sleep(60)
        elif task == "flat":
            train_flat(toy, folder / task)
        elif task == "resume":
            train(toy, model, folder / "killed", resume=True)
        else:  # the name of a run
            if task == "killed":
                die_while_saving_the_second()
            train(toy, model, folder / task)


if __name__ == "__main__":
    main()
