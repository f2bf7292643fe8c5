"""What a training run runs on, in words and numbers that name no machine."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

import psutil
import torch


def describe_hardware() -> dict[str, Any]:
    """Processor, cores, memory in GB, GPU where there is one, and torch's version, as JSON values."""
    found: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "torch": str(torch.__version__),
    }
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def _processor() -> str:
    try:
        named = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        named = None
    return named[1].strip() if named else platform.processor() or platform.machine()
