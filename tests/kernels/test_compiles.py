"""Every kernel compiles for sm_90, in every dtype, with the compiler that Triton brings."""

import os
import subprocess
import sys
from pathlib import Path


def test_for_a_hopper_card_without_one(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    program = [sys.executable, str(Path(__file__).parent / "compile_all.py")]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == 12 + 5
