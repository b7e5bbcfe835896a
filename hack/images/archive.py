"""Turns an exported image into an archive: uncompressed, since it is loaded more often than it is sent anywhere.

It is what newer `docker save` writes too: an OCI layout with docker's own `manifest.json` beside its index, so that
containerd, docker and podman all read it.
"""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

NAME_IN_CONTAINERD = "io.containerd.image.name"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def write_archive(name: str, export: Path, archive: Path) -> None:
    """Pack the image `name` from `export`, a folder with its manifest and its blobs by digest."""
    content = (export / "manifest.json").read_bytes()
    manifest: dict[str, Any] = json.loads(content)
    blobs = {part["digest"]: export / part["digest"].removeprefix("sha256:") for part in _parts(manifest)}
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    entry = {"mediaType": MANIFEST, "digest": digest, "size": len(content), "annotations": {NAME_IN_CONTAINERD: name}}
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(tar, "index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())
        _add(tar, "manifest.json", json.dumps([build_docker_entry(name, manifest)]).encode())
        _add(tar, _blob(digest), content)
        for blob, file in blobs.items():
            tar.add(file, _blob(blob))


def build_docker_entry(name: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """The image as docker's `manifest.json` tells of it."""
    layers = [_blob(layer["digest"]) for layer in manifest["layers"]]
    return {"Config": _blob(manifest["config"]["digest"]), "RepoTags": [name], "Layers": layers}


def _parts(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [*manifest["layers"], manifest["config"]]


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
