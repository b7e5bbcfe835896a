"""Acting as a user without rights, in tests that root runs as well."""

import os
import traceback
from collections.abc import Callable

AS_ROOT = os.geteuid() == 0


def as_someone(act: Callable[[], None]) -> None:
    """Run it as a user without rights; where the tests run as one already, just run it."""
    if not AS_ROOT:
        act()
        return
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
