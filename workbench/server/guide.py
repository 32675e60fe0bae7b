"""The guide as a site, for JupyterLab's Help menu; below the server's own address, for holders of its token."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import JupyterHandler
from tornado.web import HTTPError, StaticFileHandler, authenticated

from workbench.cli.guide_site import GuideMissing, built_site
from workbench.server.client_socket import RESOURCE

_FIRST_PAGE: Final = "guide/index.html"
_PATIENCE_SECONDS: Final = 0.5
"""How long a page opened from the menu stays blank: a site that is built already takes less."""
_WAITING: Final = """<!doctype html>
<html lang="en">
<title>Workbench guide</title>
<body style="margin: 20vh auto; max-width: 30em; font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark">
<p role="status"><strong>Building the guide.</strong> The first time takes about half a minute. This page shows it as
soon as it is there.</p>
"""


class Guide:
    """The folder of the site; the first request builds it, in a thread, and later ones wait for that."""

    def __init__(self) -> None:
        self._building: asyncio.Task[Path] | None = None

    def building(self) -> asyncio.Task[Path]:
        """What ends with the folder, or raises `GuideMissing`; begins it anew where it failed or the folder is gone."""
        task = self._building
        if task is None or (task.done() and (task.exception() is not None or not task.result().is_dir())):
            task = self._building = asyncio.create_task(asyncio.to_thread(built_site))
        return task


class GuideHandler(JupyterHandler, StaticFileHandler):
    """Files of the site. Nothing in them is a user's, so they need no sandbox."""

    auth_resource = RESOURCE

    def initialize(self, guide: Guide) -> None:  # type: ignore[override]
        """Called by tornado for each request."""
        super().initialize(path="")
        self._guide = guide

    def get_login_url(self) -> str:
        """There is no way to log in from here: the guide is opened from JupyterLab, which has the cookie."""
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
        building = self._guide.building()
        await asyncio.wait([building], timeout=_PATIENCE_SECONDS if not path else None)
        if not building.done():
            self.set_header("Cache-Control", "no-store")
            self.set_header("Refresh", "2")
            self.write(_WAITING)
            await self.flush()  # and not at the end: that looks for the file which this is not
            return
        try:
            self.root = str(building.result())
        except GuideMissing as error:
            raise HTTPError(503, str(error)) from error
        if path:
            await super().get(path, include_body)
        else:
            self.redirect(f"{self.request.path}{_FIRST_PAGE}")
