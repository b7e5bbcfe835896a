"""The operator's image with one layer more: the entry point that answers before the bucket has it (`unconfirmed`).

Made from the image's archive alone, so that it needs no builder and is in every other byte what is released.
"""

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hack.images.archive import MANIFEST, write_archive
from hack.images.plan import REGISTRY, compute_fingerprint

ENTRY = "usr/local/bin/alineod"
SCRIPT = Path(__file__).with_name("unconfirmed")
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"


def compute_ref(operator: str) -> str:
    """The name of the image that is made of the image `operator` and the script as it is now."""
    parts = [("operator", operator.encode()), ("script", SCRIPT.read_bytes())]
    return f"{REGISTRY}/unconfirmed:{compute_fingerprint(parts)}"


def build_control_image(operator: str, archive: Path, target: Path) -> str:
    """Write the archive `target` from the `archive` of the image `operator`; returns the new image's name."""
    ref = compute_ref(operator)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        export = Path(folder)
        config, layers = _unpack(archive, export)
        layers.append(_write_blob(export, build_layer(SCRIPT.read_bytes())))
        written = _write_blob(export, json.dumps(add_layer(config, layers[-1])).encode())
        (export / "manifest.json").write_text(json.dumps(_build_manifest(export, written, layers)))
        write_archive(ref, export, target)
    return ref


def build_layer(script: bytes) -> bytes:
    """A layer with the entry point and nothing else."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        entry = tarfile.TarInfo(ENTRY)
        entry.size, entry.mode = len(script), 0o755
        tar.addfile(entry, io.BytesIO(script))
    return layer.getvalue()


def add_layer(config: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """The image's configuration with one uncompressed layer more."""
    rootfs = config["rootfs"]
    history = [*config.get("history", []), {"created_by": "answers before the bucket has it"}]
    return {**config, "rootfs": {**rootfs, "diff_ids": [*rootfs["diff_ids"], digest]}, "history": history}


def _unpack(archive: Path, export: Path) -> tuple[Mapping[str, Any], list[str]]:
    """The configuration of the archive's image, and its layers' digests, whose blobs are in `export` then."""
    with tarfile.open(archive) as tar:
        image = json.loads(_read(tar, "manifest.json"))[0]
        layers = [_write_blob(export, _read(tar, layer)) for layer in image["Layers"]]
        return json.loads(_read(tar, image["Config"])), layers


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    return file.read() if file else b""


def _write_blob(export: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    (export / digest).write_bytes(content)
    return f"sha256:{digest}"


def _build_manifest(export: Path, config: str, layers: Sequence[str]) -> dict[str, Any]:
    def describe(kind: str, digest: str) -> dict[str, Any]:
        size = (export / digest.removeprefix("sha256:")).stat().st_size
        return {"mediaType": kind, "digest": digest, "size": size}

    return {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": describe(CONFIG_TYPE, config),
        "layers": [describe(LAYER_TYPE, layer) for layer in layers],
    }
