# visenv on a machine without a GPU: environments, the main job, evaluation.
#
#   docker build --file docker/cpu.Dockerfile --tag visenv:cpu --build-arg TORCH_INDEX=<address of PyTorch's CPU index> .
#   docker run --rm visenv:cpu visenv rollout ZoomVQA-v0 --groups 2 --out /tmp/rollout
#   mkdir -p runs && docker run --rm --user "$(id -u):$(id -g)" -v "$PWD/runs:/visenv/runs" visenv:cpu visenv train
#
# Docker's default profile refuses user namespaces, so the sandbox of ArftCoding uses only Landlock (docs/sandbox.md).
# `visenv doctor` in the container lists the available layers.
FROM python:3.11-slim-bookworm

RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends g++ git libosmesa6 make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /visenv
COPY constraints constraints
# PyTorch is installed first and separately. Without TORCH_INDEX, pip installs the CUDA build, which is gigabytes larger.
ARG TORCH_INDEX=
RUN pip install --no-cache-dir --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} \
    --constraint constraints/cpu.txt torch
COPY . .
RUN pip install --no-cache-dir --constraint constraints/cpu.txt '.[train,data,documents,embodied]' \
    && pip uninstall -y torchaudio torchcodec triton \
    && cp constraints/torchvision/* "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

RUN useradd --create-home player && chown player /visenv
USER player
CMD ["visenv", "list"]
