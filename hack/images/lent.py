"""What the building machine lends to package clients inside a build: CA bundle, sources, proxies, client settings.

They are given as build secrets, mounted for single commands (hack/images/with-host.sh) and never part of an image.
"""

import ast
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from hack.images.run import read_output

CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
CA_DEFAULT = "/etc/ssl/certs/ca-certificates.crt"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
SUITE = "bookworm"
TARGETS_FORMAT = "$(CREATED_BY)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def write_secrets(folder: Path, env: Mapping[str, str]) -> dict[str, Path]:
    """Write every secret this machine has something for; returns id to file. Only we can read them."""
    folder.mkdir(mode=0o700)
    secrets = {name: content for name, content in _read_lendings(env) if content}
    for name, content in secrets.items():
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(content)
    return {name: folder / name for name in secrets}


def build_sources(index_targets: str) -> str:
    """Lines of a sources.list from `apt-get indextargets`: the machine's own Debian mirrors of this suite."""
    lines = set()
    for line in index_targets.splitlines():
        created_by, uri, release, component, origin = (line.split("|") + [""] * 5)[:5]
        if created_by == "Packages" and origin == "Debian" and release.split("-")[0] == SUITE and component == "main":
            lines.add(f"deb [signed-by={KEYRING}] {uri} {release} {component}\n")
    return "".join(sorted(lines))


def build_apt_config(dump: str, *, has_bundle: bool, has_sources: bool) -> str:
    """An apt configuration from `apt-config dump`: proxies of the machine, and its sources in place of the image's."""
    lines = [line for line in dump.splitlines() if line.startswith("Acquire::") and "::Proxy" in line]
    if has_bundle:
        lines.append('Acquire::https::CAInfo "/run/secrets/ca";')
    if has_sources:
        lines += ['Dir::Etc::sourcelist "/run/secrets/sources";', 'Dir::Etc::sourceparts "-";']
    return "".join(f"{line}\n" for line in lines)


def build_pip_config(listed: str) -> str:
    """A pip.conf from `pip config list`, whose lines are `global.index-url='...'` or `:env:.index-url='...'`."""
    settings = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in PIP_SETTINGS and value:
            settings[key] = str(ast.literal_eval(value)).replace("\n", "\n  ")
    return "".join(["[global]\n", *(f"{key} = {value}\n" for key, value in settings.items())]) if settings else ""


def _read_lendings(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    sources = build_sources(read_output(["apt-get", "indextargets", "--format", TARGETS_FORMAT]))
    bundle = _read_text(next((env[name] for name in CA_VARIABLES if env.get(name)), CA_DEFAULT))
    yield "ca", bundle
    yield "sources", sources
    acquire = read_output(["apt-config", "dump"])
    yield "apt", build_apt_config(acquire, has_bundle=bool(bundle), has_sources=bool(sources))
    yield "pip", build_pip_config(read_output(["python3", "-m", "pip", "config", "list"]))
    yield "npm", _read_text(env.get("NPM_CONFIG_USERCONFIG", "~/.npmrc"))
    yield "env", "".join(f"export {name}={shlex.quote(env[name])}\n" for name in PROXIES if env.get(name))


def _read_text(path: str) -> str:
    file = Path(os.path.expanduser(path))  # noqa: PTH111
    return file.read_text() if file.is_file() else ""
