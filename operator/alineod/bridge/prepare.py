"""What must be so before a turn may start: the pod restored, credentials, setup run, a harness that answers."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from alineod.bridge.harness import Harness
from alineod.bridge.settings import Credential, Settings
from alineod.bridge.setup import SetupScript
from alineod.errors import AlineoError, Refused, Unavailable
from alineod.files import Token
from alineod.wire.archives import RestoreReport
from alineod.wire.turns import Session

_POLL = 1.0  # s between looks at what someone else will put there
_PROBE_PAUSE = (5.0, 300.0)  # s after the first probe that failed, doubled each time, and at most
_SKELETON = Path("/etc/skel")
_log = logging.getLogger("alineod.bridge")


@dataclass(frozen=True)
class Standing:
    """Why no turn may start: a CamelCase word and a sentence. An empty reason: it may."""

    reason: str = ""
    message: str = ""

    @property
    def ready(self) -> bool:
        return not self.reason


READY = Standing()
DRAINING = Standing("Draining", "the sandbox is shutting down: the turn that runs may end, no other begins")


class Preparation:
    """Brings the sandbox to where a turn may start, step by step; waits for what others bring."""

    def __init__(self, settings: Settings, harness: Harness | None, setup: SetupScript, token: Token) -> None:
        self._settings = settings
        self._harness = harness
        self._setup = setup
        self._token = token
        self._step = Standing("Starting", "the bridge has just started")

    @property
    def standing(self) -> Standing:
        """How it stands now; a credential that went away again counts."""
        if not self._step.ready:
            return self._step
        missing = find_missing(self._settings)
        return explain_missing(self._settings.namespace, missing) if missing else READY

    def read_environment(self) -> dict[str, str]:
        """The environment for what we start, with the credentials as they are now.

        Raises:
            Unavailable: reason `CredentialsMissing`.
        """
        if missing := find_missing(self._settings):
            standing = explain_missing(self._settings.namespace, missing)
            raise Unavailable(standing.reason, standing.message)
        values = {
            one.name: _read_value(self._settings.credentials / one.name) for one in self._settings.credential_names
        }
        return {**self._settings.environment, **values}

    async def run(self) -> None:
        """Go through the steps. Ends when the sandbox is ready, or when it never will be as it is."""
        try:
            await self._steps()
        except Refused as error:
            self._step = Standing(error.reason, error.message)
        except Exception as error:
            _log.exception("the sandbox cannot be prepared")
            self._step = Standing("BridgeFailed", f"the sandbox cannot be prepared: {error!r}")

    async def _steps(self) -> None:
        if self._harness is None:
            kind = self._settings.harness.type
            raise Refused("HarnessUnsupported", f"this release cannot drive the harness {kind!r}; it drives Pi")
        while not self._token() or read_report(self._settings.control) is None:
            self._step = Standing("NotRestored", "the restore container has not brought the files of this agent yet")
            await asyncio.sleep(_POLL)
        while missing := find_missing(self._settings):
            self._step = explain_missing(self._settings.namespace, missing)
            await asyncio.sleep(_POLL)
        fill_home(self._settings.home)
        self._step = Standing("SettingUp", "sandbox.setup is running")
        await self._setup.run(self.read_environment())
        await self._probe(self._harness)
        self._step = READY

    async def _probe(self, harness: Harness) -> None:
        self._step = Standing("HarnessStarting", f"{harness.name} is being tried")
        pause, longest = _PROBE_PAUSE
        while True:
            try:
                return await harness.probe(self.read_environment())
            except AlineoError as error:
                self._step = Standing(error.reason, error.message)
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)


def find_missing(settings: Settings) -> list[Credential]:
    """The credentials that are not there, or empty."""
    return [one for one in settings.credential_names if not _read_value(settings.credentials / one.name)]


def explain_missing(namespace: str, missing: Sequence[Credential]) -> Standing:
    """Which Secret and key are wanted, and that nothing else needs doing."""
    wanted = ", ".join(f"key {one.key} of Secret {one.secret} (for {one.name})" for one in missing)
    message = f"missing or empty in namespace {namespace}: {wanted}; create it, and the sandbox picks it up by itself"
    return Standing("CredentialsMissing", message)


def read_report(control: Path) -> RestoreReport | None:
    """What the restore container did; None while it has not finished."""
    try:
        return msgspec.json.decode((control / "restored.json").read_bytes(), type=RestoreReport)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def read_session(control: Path) -> Session | None:
    """Where the conversation that the restore container brought must stand."""
    report = read_report(control)
    return report.session if report else None


def fill_home(home: Path) -> None:
    """Give an empty home what a new user's home has."""
    import shutil  # half a megabyte that most starts never need

    if not home.is_dir() or not _SKELETON.is_dir() or [path for path in home.iterdir() if path.name != "lost+found"]:
        return
    for path in _SKELETON.iterdir():  # one by one: home itself may be somebody else's, whose mode and times stay
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, home / path.name, symlinks=True)
        else:
            shutil.copy2(path, home / path.name, follow_symlinks=False)


def _read_value(path: Path) -> str:
    try:
        return path.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        return ""
