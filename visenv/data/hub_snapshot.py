"""Downloads data sets of the Hugging Face Hub once, by commit, into the usual cache of the hub.

``hub:owner/name`` or ``hub:owner/name@revision`` can be used instead of the folder in the name of a
data set::

    vstar:hub:owner/name@main        hrbench:hub:owner/name?size=8k

This needs the extra ``hub``. Tokens, mirrors and offline use are configured with the environment
variables of huggingface_hub: ``HF_TOKEN``, ``HF_ENDPOINT``, ``HF_HUB_OFFLINE`` and ``HF_HOME``.
"""

from __future__ import annotations

import re
from pathlib import Path

from visenv.errors import ConfigurationError, DataError
from visenv.packages import missing_package
from visenv.plugins import describe_error

PREFIX = "hub:"

_PLACE = re.compile(r"hub:(?P<repository>[^@?]+)(?:@(?P<revision>[^?]+))?")
_DATA = re.compile(rf"(?P<name>[^?]*?:){_PLACE.pattern}(?P<query>\?.*)?", re.DOTALL)


def download(place: str) -> Path:
    """Return the folder of a data set of the hub; download it if it is not in the cache.

    The name of the folder is the commit of the revision.

    Args:
        place: ``"hub:owner/name"``, which means the branch ``main``, or
            ``"hub:owner/name@revision"``, where the revision is a branch, a tag or a commit.

    Raises:
        ConfigurationError: If `place` is malformed, or huggingface_hub is not installed.
        DataError: If the data set cannot be downloaded.
    """
    matched = _PLACE.fullmatch(place)
    if matched is None:
        raise ConfigurationError(
            f"A data set of the hub is hub:owner/name or hub:owner/name@revision, got {place!r}."
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise missing_package(place, error, "hub") from error
    try:
        return Path(
            snapshot_download(
                matched["repository"], repo_type="dataset", revision=matched["revision"]
            )
        )
    except Exception as error:  # errors of HTTP, hub and disk have no common base class
        raise DataError(f"{place} cannot be downloaded: {describe_error(error)}") from error


def pinned(data: str) -> str:
    """Return the name of a data set with the commit instead of its revision.

    Args:
        data: A name as for `visenv.data.open.open_data`; a name of a local data set is returned
            unchanged.

    Raises:
        ConfigurationError: If huggingface_hub is not installed.
        DataError: If the data set cannot be downloaded.
    """
    matched = _DATA.fullmatch(data)
    if matched is None:
        return data
    place = data.removeprefix(matched["name"]).partition("?")[0]
    commit = download(place).name
    return f"{matched['name']}{PREFIX}{matched['repository']}@{commit}{matched['query'] or ''}"
