"""Build and fetch every tool that the project needs, into the cache, from a bare Python.

    python3 hack/toolchain/toolchain.py TARGET...

Runs with the standard library alone, on any Python from 3.11. See `toolchain.py help`.
"""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

if sys.version_info < (3, 11):  # noqa: UP036 - this is where an older one is told
    sys.exit(
        "toolchain: Python {}.{} runs this, 3.11 or newer is needed: call it by a newer one.".format(*sys.version_info)
    )

sys.path[0] = str(CHECKOUT)  # the modules beside this file are imported as hack.toolchain.…

from hack.toolchain.main import main  # noqa: E402 - after the version check, so that an old Python gets the sentence

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], CHECKOUT))
