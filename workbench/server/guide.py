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


class Guide:
    """The folder of the site; the first request builds it, in a thread, and later ones wait for that."""

    def __init__(self) -> None:
        self._site: Path | None = None
        self._building = asyncio.Lock()

    async def site(self) -> Path:
        """The folder.

        Raises:
          GuideMissing: if it cannot be built.
        """
        async with self._building:
            if self._site is None or not self._site.is_dir():
                self._site = await asyncio.to_thread(built_site)
            return self._site


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
        try:
            self.root = str(await self._guide.site())
        except GuideMissing as error:
            raise HTTPError(503, str(error)) from error
        if path:
            await super().get(path, include_body)
        else:
            self.redirect(f"{self.request.path}{_FIRST_PAGE}")
