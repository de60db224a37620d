"""The type of the fixture `memoriter`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Run = Callable[..., subprocess.CompletedProcess[str]]
RunForked = Callable[..., subprocess.CompletedProcess[bytes]]
