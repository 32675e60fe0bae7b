"""Clients of Google Cloud's APIs, and the metadata of machines there."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

from workbench.errors import LibraryMissing, UnavailableError

_METADATA = "http://metadata.google.internal/computeMetadata/v1/"
_SECONDS = 5.0


def client(api: str, version: str, credentials: Any, discovery_url: str | None = None) -> Any:
    """Creates a client of an API by googleapiclient's discovery.

    Args:
      api: Such as "compute".
      version: Such as "v1".
      credentials: Credentials for googleapiclient; "default" for the application's default credentials, or None.
      discovery_url: Address of the API's description, with `{api}` and `{apiVersion}`.

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
    """The entry `name` of the machine's metadata server, such as "project/project-id".

    Raises:
      UnavailableError: if there is no such server, so this is not a Google Cloud machine.
    """
    request = urllib.request.Request(_METADATA + name, headers={"Metadata-Flavor": "Google"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, OSError) as error:
        raise UnavailableError(
            f"no metadata server answers for {name!r}, so this is not a machine of Google Cloud: pass project and zone"
        ) from error
