"""`make lock`: writes requirements/*.txt from pyproject.toml, pinned by hash and naming no index.

Each image installs one extra, each program that comes as a wheel is a group of its own. All agree with dev.txt.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("bridge", "sandbox", "operator")
PROGRAMS = ("go", "litestream", "node", "seaweedfs", "uv")
COMMON = (
    "pip", "compile", "--quiet", "--upgrade", "--universal", "--generate-hashes", "--no-emit-index-url",
    "--python-version", "3.11", "--custom-compile-command", "make lock",
)  # fmt: skip


def main(uv: str) -> int:
    compile_one(uv, "dev", "pyproject.toml", *(f"--extra={extra}" for extra in EXTRAS), "--group=dev")
    for extra in EXTRAS:
        compile_one(uv, extra, "pyproject.toml", f"--extra={extra}", "--constraint=requirements/dev.txt")
    for program in PROGRAMS:
        compile_one(uv, program, f"--group=pyproject.toml:{program}")
    return 0


def compile_one(uv: str, name: str, *words: str) -> None:
    print(f"requirements/{name}.txt", flush=True)
    subprocess.run([uv, *COMMON, *words, "--output-file", f"requirements/{name}.txt"], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
