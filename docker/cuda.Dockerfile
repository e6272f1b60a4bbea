# visenv on machines with NVIDIA GPUs: training, with vLLM as the sampler.
#
#   docker build --file docker/cuda.Dockerfile --tag visenv:cuda .
#   mkdir -p runs && docker run --rm --gpus all --ipc host --user "$(id -u):$(id -g)" -v "$PWD/runs:/visenv/runs" visenv:cuda visenv train
#
# constraints/gpu.txt contains the versions for GPUs. The wheels of PyTorch contain the CUDA libraries. The base image is a
# development image, because DeepSpeed compiles its operators when they are first used. Its CUDA has the same major
# version (13) as PyTorch's.
FROM nvidia/cuda:13.0.1-devel-ubuntu22.04

ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends \
        g++ git libegl1 libosmesa6 make python3.11 python3.11-dev python3.11-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3.11 -m venv /opt/visenv
ENV PATH=/opt/visenv/bin:$PATH

WORKDIR /visenv
COPY constraints constraints
RUN pip install --no-cache-dir --constraint constraints/gpu.txt torch
COPY . .
RUN pip install --no-cache-dir --constraint constraints/gpu.txt '.[train,vllm,ray,data,documents,embodied]'

RUN useradd --create-home player && chown player /visenv
USER player
CMD ["visenv", "doctor"]
