"""`python -m alineod.bridge`: the bridge alone, without the program around it."""

import os
import sys

from alineod.bridge.main import main

sys.exit(main(os.environ))
