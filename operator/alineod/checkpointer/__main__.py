"""`python -m alineod.checkpointer`: the sidecar alone, without the program around it."""

import os
import sys

from alineod.checkpointer.main import main

sys.exit(main(os.environ))
