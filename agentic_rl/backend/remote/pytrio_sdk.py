"""The user's PyTRIO account, and the SDK imported so that it writes no file of theirs."""

import os
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from agentic_rl.backend.remote.service import Account
from agentic_rl.errors import BackendError

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_DEFAULT_PROFILES = ("", "default", "(default)")
_URL = "https://pytrio.com"
_FORMER_URL = "https://pytrio.cn"


def account(base_url: str | None) -> Account:
    """The key, from the environment or the profile that `trio login` wrote; neither is changed.

    A stored key goes to the service that it was stored for and to no other.
    """
    key = os.environ.get("PYTRIO_API_KEY", "").strip()
    url = base_url or os.environ.get("PYTRIO_BASE_URL", "").strip()
    profile = {} if key and url else _profile()
    stored_url = profile.get("base_url", "").removesuffix("/")
    # An address that the service has left; the SDK reads it as its present one.
    stored_url = "" if stored_url == _FORMER_URL else stored_url
    if not key:
        key = profile.get("api_key", "")
        if key and url and url.removesuffix("/") != (stored_url or _URL):
            raise BackendError(
                f"the stored PyTRIO key is not for {url}:"
                " set PYTRIO_API_KEY to the key of that service"
            )
    url = url or stored_url
    if not key:
        raise BackendError(
            "no PyTRIO key: run `trio login`, or set PYTRIO_API_KEY (backend=linear needs none)"
        )
    if url and urlsplit(url).scheme != "https" and urlsplit(url).hostname not in _LOOPBACK:
        raise BackendError(f"{url} would carry the PyTRIO key unencrypted: use an https address")
    return Account(key, url or None)


def import_sdk() -> Any:
    """`import pytrio`, which rewrites the user's profile unless it finds none."""
    if "pytrio" in sys.modules:
        return sys.modules["pytrio"]
    hook = sys.excepthook
    try:
        with TemporaryDirectory(prefix="agentic-rl-") as home, _environment(home):
            import pytrio
    except ImportError as error:
        raise BackendError(
            f"backend=pytrio cannot import its SDK ({error}): pip install 'pytrio>=0.2.9,<0.3'"
        ) from error
    finally:
        # The SDK's own hook would word our errors, and wait for the service on Ctrl-C.
        sys.excepthook = hook
    return pytrio


@contextmanager
def _environment(home: str) -> Iterator[None]:
    """An empty home and no PYTRIO_*: what the SDK would read while it is imported."""
    changed = {"HOME", "USERPROFILE", *(name for name in os.environ if name.startswith("PYTRIO_"))}
    before = {name: os.environ.pop(name, None) for name in sorted(changed)}
    os.environ.update(HOME=home, USERPROFILE=home)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _profile() -> dict[str, str]:
    root = Path.home() / ".pytrio"
    name = os.environ.get("PYTRIO_ENV", "").strip() or _read(root / "env.toml").get(
        "active_env", ""
    )
    folder = root if name in _DEFAULT_PROFILES else root / "envs" / name
    return _read(folder / "config.toml")


def _read(file: Path) -> dict[str, str]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BackendError(
            f"{file} cannot be read ({error}): `trio login` writes it anew"
        ) from error
    return {key: value.strip() for key, value in content.items() if isinstance(value, str)}
