"""Two hosts on this machine: network namespaces with a cable that can be cut, names and files of their own."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

from distributed.security import Security

ADDRESSES = {"a": "10.254.0.1", "b": "10.254.0.2"}


class TwoHosts:
    """Namespaces whose traffic stays in them.

    Attributes:
      inside: Host -> what to put before a command to run it there; see `OwnCluster`.
    """

    def __init__(self) -> None:
        self._names = {host: f"wb{os.getpid()}{host}" for host in ADDRESSES}
        # Each host has its own name and its own files in /tmp. A host's own name resolves to loopback, as on Debian.
        own = (
            'hostname "$0" && mount -t tmpfs tmpfs /tmp && shown="$1" && shift && printf "$shown" > /tmp/hosts && '
            'mount --bind /tmp/hosts /etc/hosts && exec "$@"'
        )
        self.inside = {
            host: (
                "ip",
                "netns",
                "exec",
                name,
                "unshare",
                "--uts",
                "--mount",
                "sh",
                "-c",
                own,
                f"host-{host}",
                _names_on(host),
            )
            for host, name in self._names.items()
        }

    def make(self) -> None:
        """Makes them.

        Raises:
          subprocess.CalledProcessError: if this user may not; `stderr` says why.
          FileNotFoundError: if a command is not installed.
        """
        a, b = self._names.values()
        for name in (a, b):
            _run("ip", "netns", "add", name)
        _run("ip", "-n", a, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", b)
        for host, name in self._names.items():
            _run("ip", "-n", name, "address", "add", f"{ADDRESSES[host]}/24", "dev", "cable")
            _run("ip", "-n", name, "link", "set", "lo", "up")
            _run("ip", "-n", name, "link", "set", "cable", "up")
        _run(*self.inside["b"], "true")

    def cut(self) -> None:
        """Nothing goes through the cable from now on, and neither end notices at once."""
        _run("ip", "-n", self._names["b"], "link", "set", "cable", "down")

    def join(self) -> None:
        """The cable is whole again."""
        _run("ip", "-n", self._names["b"], "link", "set", "cable", "up")

    def remove(self) -> None:
        """Removes both, with the cable."""
        for name in self._names.values():
            with contextlib.suppress(FileNotFoundError):
                subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)

    def left(self) -> list[str]:
        """Those that are still there."""
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, timeout=20).stdout
        return [name for name in self._names.values() if name in listed]


def _names_on(host: str) -> str:
    """The content of a host's `/etc/hosts`, in printf's form."""
    others = "".join(f"{ADDRESSES[other]} host-{other}\\n" for other in ADDRESSES if other != host)
    return f"127.0.0.1 localhost\\n127.0.1.1 host-{host}\\n{others}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)


def certificates(directory: Path) -> dict[str, str]:
    """Files for TLS: option of Dask's commands -> path."""
    security = Security.temporary()
    texts = {
        "--tls-ca-file": security.tls_ca_file,
        "--tls-cert": security.tls_worker_cert,
        "--tls-key": security.tls_worker_key,
    }
    files = {}
    for option, text in texts.items():
        path = directory / f"{option.strip('-')}.pem"
        path.write_text(text)
        path.chmod(0o600)
        files[option] = str(path)
    return files
