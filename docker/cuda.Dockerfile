# visenv on machines with NVIDIA GPUs: training, with vLLM as the sampler.
#
#   docker build --file docker/cuda.Dockerfile --tag visenv:cuda .
#   mkdir -p runs && docker run --rm --gpus all --ipc host --user "$(id -u):$(id -g)" -v "$PWD/runs:/visenv/runs" visenv:cuda visenv train
#
# constraints/gpu.txt contains the versions for GPUs. PyTorch's wheels bring the CUDA libraries. DeepSpeed compiles its
# operators when they are first used, and needs the development image, of the same major version (13), for that.
#
# Ubuntu 24.04 has a released Python 3.12. Ubuntu 22.04 has only a release candidate of Python 3.11 (3.11.0~rc1).
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04

ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends \
        g++ git libegl1 libosmesa6 make python3.12 python3.12-dev python3.12-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3.12 -m venv /opt/visenv
ENV PATH=/opt/visenv/bin:$PATH

WORKDIR /visenv
COPY constraints constraints
# constraints/gpu.txt was resolved for Python 3.11. All its versions have a wheel for Python 3.12 or build from source
# (DeepSpeed), and they fit together, with one exception: vLLM 0.31.0 needs setuptools < 81 on Python 3.12.
RUN sed 's/^setuptools==.*/setuptools==80.10.2/' constraints/gpu.txt > /opt/gpu.txt \
    && pip install --no-cache-dir --constraint /opt/gpu.txt torch
COPY . .
RUN pip install --no-cache-dir --constraint /opt/gpu.txt '.[train,vllm,ray,data,documents,embodied]'

RUN useradd --create-home player && chown player /visenv
USER player
CMD ["visenv", "doctor"]
