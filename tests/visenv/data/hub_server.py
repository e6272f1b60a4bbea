"""Serves a stub of the HTTP interface of the Hugging Face Hub: data sets, branches and commits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

from typing_extensions import override

Files = Mapping[str, bytes]


class Hub:
    """Holds the data sets that the stub serves, and records the requests.

    Attributes:
        url: The address, for ``HF_ENDPOINT``.
        commits: The files of each commit of a data set, by ``"owner/name"`` and commit.
        branches: The commit of each branch, by ``"owner/name"`` and branch.
        requests: The method and path of every request.
        broken: Paths of files whose download fails with status 500.
    """

    def __init__(self) -> None:
        self.url = ""
        self.commits: dict[str, dict[str, Files]] = {}
        self.branches: dict[str, dict[str, str]] = {}
        self.requests: list[str] = []
        self.broken: set[str] = set()

    def push(self, repository: str, files: Files, branch: str = "main") -> str:
        """Make a commit on a branch and return its hash."""
        described = json.dumps([repository, sorted((k, v.hex()) for k, v in files.items())])
        commit = hashlib.sha1(described.encode()).hexdigest()
        self.commits.setdefault(repository, {})[commit] = dict(files)
        self.branches.setdefault(repository, {})[branch] = commit
        return commit

    def resolve(self, repository: str, revision: str) -> str | None:
        """Return the commit of a branch or a commit."""
        if revision in self.commits.get(repository, {}):
            return revision
        return self.branches.get(repository, {}).get(revision)


@contextmanager
def serve() -> Iterator[Hub]:
    """Serve a hub on a free port of this machine."""
    hub = Hub()

    class Handler(_Handler):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    served: Hub

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.served.requests.append(f"{self.command} {path}")
        match path.strip("/").split("/"):
            case ["api", "datasets", owner, name, kind, *rest]:
                self._describe(f"{owner}/{name}", kind, "/".join(rest))
            case ["datasets", owner, name, "resolve", revision, *rest]:
                self._file(f"{owner}/{name}", revision, "/".join(rest))
            case _:
                self._error(404, "RepoNotFound")

    def _describe(self, repository: str, kind: str, revision: str) -> None:
        commit = self.served.resolve(repository, revision)
        if repository not in self.served.commits:
            self._error(401, "RepoNotFound")
        elif commit is None:
            self._error(404, "RevisionNotFound")
        elif kind == "revision":
            self._json({"id": repository, "sha": commit, "siblings": [], "tags": []})
        else:
            files = self.served.commits[repository][commit]
            self._json([_entry(path, content) for path, content in files.items()])

    def _file(self, repository: str, revision: str, path: str) -> None:
        commit = self.served.resolve(repository, revision)
        content = self.served.commits.get(repository, {}).get(commit or "", {}).get(path)
        if content is None:
            self._error(404, "EntryNotFound")
        elif path in self.served.broken:
            self._error(500, "InternalError")
        else:
            tag = hashlib.sha1(content).hexdigest()
            self._send(200, content, {"ETag": f'"{tag}"', "X-Repo-Commit": str(commit)})

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, code: str) -> None:
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code})

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def _entry(path: str, content: bytes) -> dict[str, Any]:
    oid = hashlib.sha1(content).hexdigest()
    return {"type": "file", "path": path, "size": len(content), "oid": oid}
