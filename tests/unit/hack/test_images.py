"""The image build: what each image is made of, what the machine lends to the build, and what an archive looks like."""

import ast
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.images.archive import write_archive
from hack.images.dockerfile import find_inputs
from hack.images.lent import build_apt_config, build_pip_config, build_sources
from hack.images.plan import TARGETS, compute_fingerprint, plan_images, read_snapshot, write_context

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "operator"

DOCKERFILE = """ARG BASE
# a comment \\
FROM ${BASE} AS low
RUN --mount=type=bind,source=hack/tool.sh,target=/t \\
    # in the middle
    sh /t
FROM low AS code
COPY one two /to/
FROM other AS side
COPY never /to/
FROM low AS top
COPY --chmod=755 --from=code /to /to
COPY three /to
"""


@pytest.mark.parametrize(
    ("target", "inputs"),
    [
        ("low", {"hack/tool.sh"}),
        ("code", {"hack/tool.sh", "one", "two"}),
        ("side", {"never"}),
        ("top", {"hack/tool.sh", "one", "two", "three"}),
        ("none", set()),
    ],
)
def test_reads_what_a_target_is_made_of(target: str, inputs: set[str]) -> None:
    assert find_inputs(DOCKERFILE, target) == inputs


@pytest.mark.parametrize("target", TARGETS)
def test_every_input_of_the_dockerfile_is_there(target: str) -> None:
    missing = [path for path in find_inputs((ROOT / "Dockerfile").read_text(), target) if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize(
    ("target", "entries"),
    [
        ("sandbox", ["alineod.cli.main", "alineod.checkpointer.main", "alineod.checkpointer.restore"]),
        ("agent-pi", ["alineod.cli.main", "alineod.bridge.main"]),
    ],
)
def test_an_image_carries_every_module_its_processes_import(target: str, entries: list[str]) -> None:
    inputs = find_inputs((ROOT / "Dockerfile").read_text(), target)
    needed = {str(path.relative_to(ROOT)) for path in _closure(entries)}
    absent = sorted(path for path in needed if not any(path == i or path.startswith(f"{i}/") for i in inputs))
    assert absent == [], f"add them to the code stage of {target} in the Dockerfile"


def test_only_what_goes_into_an_image_changes_its_name() -> None:
    dockerfile = "FROM x AS operator\nCOPY code /\nFROM x AS sandbox\nCOPY other /\n"
    snapshot = {"Dockerfile": dockerfile.encode(), "code/file": b"a", "codes": b"b", "other/file": b"c"}
    before = {image.target: image.fingerprint for image in plan_images(snapshot, "base")}
    after = {image.target: image.fingerprint for image in plan_images({**snapshot, "code/file": b"x"}, "base")}
    assert before["operator"] != after["operator"]
    assert before["sandbox"] == after["sandbox"]
    assert plan_images(snapshot, "another")[1].fingerprint != before["sandbox"]
    assert plan_images({**snapshot, "codes": b"x"}, "base") == plan_images(snapshot, "base")


def test_a_snapshot_holds_every_file_of_the_images_and_no_other(tmp_path: Path) -> None:
    for name in ("Dockerfile", "code/a.py", "code/__pycache__/a.pyc", "secret.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("FROM x AS operator\nCOPY code /\n" if name == "Dockerfile" else name)
    snapshot = read_snapshot(tmp_path)
    assert set(snapshot) == {"Dockerfile", "code/a.py"}
    for age, folder in enumerate(("one", "two")):
        write_context(snapshot, tmp_path / folder)
        os.utime(tmp_path / "code/a.py", (age, age))
    listings = [
        {(str(p.relative_to(tmp_path / folder)), p.stat().st_mtime, p.stat().st_mode) for p in found}
        for folder in ("one", "two")
        for found in [list((tmp_path / folder).rglob("*"))]
    ]
    assert listings[0] == listings[1]


def test_names_and_contents_cannot_be_confused() -> None:
    assert compute_fingerprint([("ab", b"c")]) != compute_fingerprint([("a", b"bc")])


def test_takes_the_machines_own_mirrors_of_this_suite_only() -> None:
    listed = (
        "Packages|http://mirror.test/debian/|bookworm|main|Debian\n"
        "Packages|http://mirror.test/debian/|bookworm-updates|main|Debian\n"
        "Packages|http://mirror.test/debian/|bookworm|contrib|Debian\n"
        "Packages|http://mirror.test/debian/|trixie|main|Debian\n"
        "Packages|http://else.test/|bookworm|main|Somebody\n"
        "DEP-11|http://mirror.test/debian/|bookworm|main|Debian\n"
        "broken\n"
    )
    lines = build_sources(listed).splitlines()
    assert [line.partition("] ")[2] for line in lines] == [
        "http://mirror.test/debian/ bookworm main",
        "http://mirror.test/debian/ bookworm-updates main",
    ]


def test_lends_proxies_and_nothing_else_of_apts_settings() -> None:
    dump = 'Acquire::http::Proxy "http://proxy.test:3128";\nAPT::Architecture "amd64";\nAcquire::Retries "3";\n'
    assert build_apt_config(dump, has_bundle=False, has_sources=False) == (
        'Acquire::http::Proxy "http://proxy.test:3128";\n'
    )
    assert "Dir::Etc::sourcelist" in build_apt_config("", has_bundle=True, has_sources=True)


def test_lends_pips_sources_and_not_its_paths() -> None:
    listed = "global.cert='/etc/ca.crt'\nglobal.index-url='http://index.test/'\n:env:.extra-index-url='a\\nb'\n"
    assert build_pip_config(listed) == "[global]\nindex-url = http://index.test/\nextra-index-url = a\n  b\n"
    assert build_pip_config("global.cert='/etc/ca.crt'\n") == ""


def test_an_archive_is_read_by_containerd_and_by_docker(tmp_path: Path) -> None:
    export, archive = tmp_path / "export", tmp_path / "image.tar"
    export.mkdir()
    for name in ("aa", "bb"):
        (export / name).write_text(name)
    manifest = {"config": {"digest": "sha256:bb"}, "layers": [{"digest": "sha256:aa"}, {"digest": "sha256:aa"}]}
    (export / "manifest.json").write_text(json.dumps(manifest))
    write_archive("localhost/x:1", export, archive)
    with tarfile.open(archive) as tar:
        files = {name: (tar.extractfile(name) or pytest.fail(name)).read() for name in tar.getnames()}
    entry = json.loads(files["index.json"])["manifests"][0]
    assert entry["annotations"] == {"io.containerd.image.name": "localhost/x:1"}
    assert json.loads(files["blobs/" + entry["digest"].replace(":", "/")]) == manifest
    assert json.loads(files["manifest.json"]) == [
        {"Config": "blobs/sha256/bb", "RepoTags": ["localhost/x:1"], "Layers": ["blobs/sha256/aa"] * 2}
    ]
    assert files["blobs/sha256/aa"] == b"aa"


def _closure(modules: list[str]) -> set[Path]:
    """Every file of the package that the modules import, at any depth, the packages above them included."""
    files: set[Path] = set()
    todo = [part for module in modules for part in _with_parents(module)]
    while todo:
        path = _find(todo.pop())
        if path and path not in files:
            files.add(path)
            todo += [part for name in _imports(path) for part in _with_parents(name)]
    return files


def _with_parents(module: str) -> list[str]:
    words = module.split(".")
    return [".".join(words[: i + 1]) for i in range(len(words))] if words[0] == "alineod" else []


def _find(module: str) -> Path | None:
    path = SOURCE / module.replace(".", "/")
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
