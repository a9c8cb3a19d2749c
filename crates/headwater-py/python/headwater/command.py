"""The command line. In: the arguments of the process. Out: its exit code."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from . import _headwater


def main() -> NoReturn:
    """What the console script ``headwater`` runs: the same program as the one built by cargo."""
    # Python's handler would wait for the interpreter, which does not run meanwhile.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_headwater.run(sys.argv))
