"""Clients of Google Cloud's APIs, and what a machine there knows of itself."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

from workbench.errors import LibraryMissing, UnavailableError

_METADATA = "http://metadata.google.internal/computeMetadata/v1/"
_SECONDS = 5.0


def client(api: str, version: str, credentials: Any, discovery_url: str | None = None) -> Any:
    """A client of an API, by googleapiclient's discovery.

    Args:
      api: Such as "compute".
      version: Such as "v1".
      credentials: Those of googleapiclient; "default" for the application's default credentials, None for no others.
      discovery_url: Where the API is described, with `{api}` and `{apiVersion}`.

    Raises:
      LibraryMissing: if googleapiclient is not installed.
    """
    try:
        from googleapiclient import discovery
    except ImportError as error:
        raise LibraryMissing(
            "googleapiclient is not installed: pip install 'replica-workbench[google-cloud]'"
        ) from error
    if credentials == "default":
        import google.auth

        credentials, _ = google.auth.default()
    more = {} if discovery_url is None else {"discoveryServiceUrl": discovery_url}
    return discovery.build(api, version, credentials=credentials, cache_discovery=False, **more)


def metadata(name: str) -> str:
    """What the machine's metadata server says of `name`, such as "project/project-id".

    Raises:
      UnavailableError: if there is none: this is not a machine of Google Cloud.
    """
    request = urllib.request.Request(_METADATA + name, headers={"Metadata-Flavor": "Google"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, OSError) as error:
        raise UnavailableError(
            f"no metadata server answers for {name!r}, so this is not a machine of Google Cloud: pass project and zone"
        ) from error
