"""The guide as a site, for JupyterLab's Help menu; below the server's own address, for holders of its token."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import JupyterHandler
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError, StaticFileHandler, authenticated

from workbench.cli.guide_site import GuideMissing, built_site
from workbench.server.client_socket import RESOURCE

_FIRST_PAGE: Final = "guide/index.html"
_PATIENCE_SECONDS: Final = 0.5
"""How long a page opened from the menu may stay blank; a site that is already built takes less."""
_WAITING: Final = """<!doctype html>
<html lang="en">
<title>Workbench guide</title>
<body style="margin: 20vh auto; max-width: 30em; font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark">
<p role="status"><strong>Building the guide.</strong> The first time takes about half a minute. This page shows it as
soon as it is there.</p>
"""


class Guide:
    """The folder of the site; the first request builds it, in a thread, and later ones wait."""

    def __init__(self) -> None:
        self._building: asyncio.Task[Path | GuideMissing] | None = None

    async def folder(self, patience_seconds: float | None = None) -> Path | None:
        """The folder, or None while it is being built; rebuilds it if it vanished or a failure was reported.

        Args:
          patience_seconds: The longest wait; None waits until it is built.

        Raises:
          GuideMissing: if there is no site. If a build failed while no request waited, the next request raises the
            reason, so that a page that checks again shows it instead of restarting the build.
        """
        task = self._building
        if task is None or (task.done() and isinstance(site := task.result(), Path) and not site.is_dir()):
            task = self._building = asyncio.create_task(asyncio.to_thread(_built))
        await asyncio.wait([task], timeout=patience_seconds)
        if not task.done():
            return None
        built = task.result()
        if isinstance(built, Path):
            return built
        if self._building is task:
            self._building = None
        raise built


def _built() -> Path | GuideMissing:
    """The built folder, or why there is none."""
    try:
        return built_site()
    except GuideMissing as error:
        return error
    except Exception as error:
        return GuideMissing(f"the guide could not be built: {type(error).__name__}: {error}")


class GuideHandler(JupyterHandler, StaticFileHandler):
    """Files of the site. They contain nothing from users, so they need no sandbox."""

    auth_resource = RESOURCE

    def initialize(self, guide: Guide) -> None:  # type: ignore[override]
        """Called by tornado for each request."""
        super().initialize(path="")
        self._guide = guide

    def get_login_url(self) -> str:
        """There is no login from here: the guide is opened from JupyterLab, which has the cookie."""
        raise HTTPError(403)

    @authenticated
    @authorized
    async def get(self, path: str, include_body: bool = True) -> None:  # type: ignore[override]
        """A file, or for no name the first page; 503 with the reason if there is no site."""
        await self._answer(path, include_body=include_body)

    @authenticated
    @authorized
    async def head(self, path: str) -> None:  # type: ignore[override]
        """The headers of `get`."""
        await self._answer(path, include_body=False)

    async def _answer(self, path: str, *, include_body: bool) -> None:
        try:
            folder = await self._guide.folder(None if path else _PATIENCE_SECONDS)
        except GuideMissing as error:
            raise HTTPError(503, str(error)) from error
        if folder is None:
            self.set_header("Cache-Control", "no-store")
            self.set_header("Refresh", "2")
            self.write(_WAITING)
            with suppress(StreamClosedError):  # the client has disconnected
                await self.flush()  # and not at the end, which looks for the file that this is not
            return
        self.root = str(folder)
        if path:
            await super().get(path, include_body)
        else:
            self.redirect(f"{self.request.path}{_FIRST_PAGE}")
