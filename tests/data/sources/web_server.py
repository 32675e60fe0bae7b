"""Servers on loopback for tests of URLs: one that fails as told, and speaks as much of S3 as tests take.

What is put in parts appears as a whole, when the parts are complete, as in https://docs.aws.amazon.com/AmazonS3/latest/API/.
"""

from __future__ import annotations

import contextlib
import gc
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

SECRET = "very-secret-key"
"""What tests have for S3, which must not be shown."""


class Web:
    """What the server has, how it misbehaves, and what it was asked.

    Attributes:
      files: Content by path, such as "/bucket/a.txt".
      trouble: How it answers, by path: a status, "cut", "hang", "no ranges" or "no length".
      healthy_after: After how many requests of a path the trouble is over.
      requests: Method and path with query of each request.
      sent_bytes: How much of files it sent.
      before: Called with method and path before each request is answered.
      release: Set to let hanging answers end.
      buckets: Where something can be put; None for everywhere.
      uploads: Parts by number, of uploads that are not complete, by path and id.
    """

    def __init__(self) -> None:
        self.url = ""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forgets all files, troubles and requests."""
        self.files: dict[str, bytes] = {}
        self.trouble: dict[str, int | str] = {}
        self.healthy_after = 1 << 30
        self.requests: list[tuple[str, str]] = []
        self.sent_bytes = 0
        self.release = threading.Event()
        self.before: Callable[[str, str], object] = lambda method, path: None
        self.buckets: set[str] | None = None
        self.uploads: dict[tuple[str, str], dict[int, bytes]] = {}


class _Handler(BaseHTTPRequestHandler):
    web: Web

    def log_message(self, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._read()

    def do_GET(self) -> None:
        self._read()

    def do_PUT(self) -> None:
        content = self._content()
        path, query, trouble = self._asked()
        if self._refused(path, trouble):
            return
        if "partNumber" in query:
            parts = self.web.uploads.get((path, query["uploadId"][0]))
            if parts is None:
                self._send(404, _error("NoSuchUpload"))
                return
            parts[int(query["partNumber"][0])] = content
        else:
            self.web.files[path] = content
        self._send(200, b"", trouble)

    def do_POST(self) -> None:
        self._content()
        path, query, trouble = self._asked()
        if self._refused(path, trouble):
            return
        if "uploads" in query:
            upload = f"upload-{len(self.web.requests)}"
            self.web.uploads[path, upload] = {}
            what, told = "InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>"
        else:
            parts = self.web.uploads.pop((path, query["uploadId"][0]), None)
            if parts is None:
                self._send(404, _error("NoSuchUpload"))
                return
            self.web.files[path] = b"".join(parts[number] for number in sorted(parts))
            what, told = "CompleteMultipartUploadResult", "<ETag>whole</ETag>"
        self._send(200, f"<{what}>{told}</{what}>".encode(), trouble)

    def do_DELETE(self) -> None:
        path, query, trouble = self._asked()
        if self._refused(path, trouble):
            return
        if "uploadId" in query:
            self.web.uploads.pop((path, query["uploadId"][0]), None)
        else:
            self.web.files.pop(path, None)
        self._send(204, b"")

    def _read(self) -> None:
        path, query, trouble = self._asked()
        if self._refused(path, trouble):
            return
        if query.get("list-type") == ["2"]:
            self._send(200, self._listing(path, query))
        elif path not in self.web.files:
            self._send(404, b"")
        else:
            self._file(self.web.files[path], trouble)

    def _asked(self) -> tuple[str, dict[str, list[str]], int | str | None]:
        """Path and query of a request, and the fault that it meets."""
        web = self.web
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        web.before(self.command, path)
        web.requests.append((self.command, self.path))
        asked = sum(1 for _, name in web.requests if urlsplit(name).path == parts.path)
        trouble = web.trouble.get(path) if asked <= web.healthy_after else None
        return path, parse_qs(parts.query, keep_blank_values=True), trouble

    def _content(self) -> bytes:
        if (
            self.headers.get("Expect", "").lower() == "100-continue"
        ):  # the base class does so only in HTTP/1.1
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _refused(self, path: str, trouble: int | str | None) -> bool:
        """Whether the request ends here: with a status, without an answer, or because its bucket does not exist."""
        writes, buckets = self.command not in ("GET", "HEAD"), self.web.buckets
        if isinstance(trouble, int):
            self._send(trouble, _error("AccessDenied") if writes else b"")
        elif trouble == "hang":
            self.web.release.wait(60)
            self.close_connection = True
        elif writes and buckets is not None and path.split("/")[1] not in buckets:
            self._send(404, _error("NoSuchBucket"))
        else:
            return False
        return True

    def _file(self, content: bytes, trouble: int | str | None) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None or trouble == "no ranges":
            self._send(200, content, trouble)
            return
        start, stop = int(asked[1]), min(int(asked[2]) + 1, len(content))
        headers = {"Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"}
        self._send(206, content[start:stop], trouble, headers)

    def _send(
        self, status: int, content: bytes, trouble: int | str | None = None, headers: Any = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header(
            "ETag", f'"{zlib.crc32(self.web.files.get(unquote(urlsplit(self.path).path), b"")):x}"'
        )
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if trouble == "no length":
            self.close_connection = True
        else:
            # A truncated answer must lack something in any case.
            self.send_header("Content-Length", str(max(len(content), int(trouble == "cut"))))
            self.send_header("Accept-Ranges", "none" if trouble == "no ranges" else "bytes")
        self.end_headers()
        if self.command == "HEAD":
            return
        if trouble == "cut":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        else:
            self.web.sent_bytes += len(content)
            self.wfile.write(content)

    def _listing(self, bucket: str, query: dict[str, list[str]]) -> bytes:
        """ListObjectsV2, https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html."""
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        start = bucket.rstrip("/") + "/"
        keys, folders = [], set()
        for name, content in self.web.files.items():
            key = name.removeprefix(start)
            if name.startswith(start) and key.startswith(prefix):
                head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
                if found:
                    folders.add(prefix + head + delimiter)
                else:
                    keys.append((key, len(content)))
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
            f"<ETag>{zlib.crc32(self.web.files[start + key]):x}</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass></Contents>"
            for key, size in sorted(keys)
        )
        rows += "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        )
        return (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket.strip('/')}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(keys) + len(folders)}"
            f"</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        ).encode()


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


@contextlib.contextmanager
def serving() -> Iterator[Web]:
    """A server on a free port of loopback."""
    web = Web()
    handler = type("Handler", (_Handler,), {"web": web})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        web.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield web
        finally:
            web.release.set()
            _close_connections()
            _stop_loop()
            server.shutdown()
            thread.join(10)


def forget_files() -> None:
    """Makes file systems look again at what there is."""
    for files in _file_systems():
        files.invalidate_cache()


def _file_systems() -> list[Any]:
    import fsspec

    kinds = [fsspec.registry[kind] for kind in ("http", "s3") if kind in fsspec.registry]
    return [files for kind in kinds for files in kind._cache.values()]


def _close_connections() -> None:
    from fsspec.asyn import sync

    for files in _file_systems():
        if getattr(files, "_s3", None) is not None:
            sync(files.loop, files._s3.__aexit__, None, None, None, timeout=10)
        elif getattr(files, "_session", None) is not None:
            sync(files.loop, files._session.close, timeout=10)
        files.clear_instance_cache()
    gc.collect()


def _stop_loop() -> None:
    """Stops fsspec's thread, which otherwise lives as long as the process. The next request creates another."""
    from fsspec import asyn

    loop, thread = asyn.loop[0], asyn.iothread[0]
    if loop is None:
        return
    asyn.sync(loop, loop.shutdown_default_executor, timeout=10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()
    asyn.reset_lock()
    asyn.loop[0] = asyn.iothread[0] = None
