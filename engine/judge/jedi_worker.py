"""The process that asks jedi about attributes: lines of JSON in and out. Knows no draft and no deadline.

It runs beside the engine because jedi holds the interpreter, cannot be interrupted, and imports compiled modules.
Its argument is a folder for what jedi keeps. Only attributes of installed modules are judged. No file of the workspace
is read: jedi gets a file's imports and no path.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jedi.api.classes import Name


MAX_KILOBYTES = 600_000  # a worker that has read so many large packages makes room


def main() -> None:
    """Answer until standard input ends, one line for each expression of a question."""
    if hasattr(os, "nice"):
        os.nice(10)
    import jedi

    # Its cache of parsed files is made of pickles: they live no longer than this process, in a folder of its own.
    jedi.settings.cache_directory = sys.argv[1]
    try:
        _answer(jedi)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody hears what is left in the buffer
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)  # the engine does it too, unless it was killed


def _answer(jedi: Any) -> None:
    for line in sys.stdin:
        question = json.loads(line)
        for expression in question["expressions"]:
            known = judge(jedi, question["imports"], expression)
            print(json.dumps({"imports": question["imports"], "expression": expression, "known": known}), flush=True)
        if _kilobytes() > MAX_KILOBYTES:
            return


def judge(jedi: Any, imports: str, expression: str) -> bool | None:
    """Whether there is the attribute that a dotted expression below the imports ends with.

    None where the object before it is not an installed module, or one that makes attributes up as they are asked for.
    """
    try:
        project = jedi.Project(os.devnull, smart_sys_path=False)
        script = jedi.Script(f"{imports}\n{expression}\n", project=project)
        row, dot = imports.count("\n") + 2, expression.rindex(".")
        if script.goto(row, dot + 1, follow_imports=True):
            return True
        objects = script.infer(row, dot - 1)
        return None if not objects or any(one.type != "module" or _is_open(one) for one in objects) else False
    except Exception:  # jedi raises all sorts of things on text in the making; then it is not known
        return None


def _is_open(module: Name) -> bool:
    """Whether the module makes attributes up as they are asked for, or is only a folder."""
    names = {one.name for one in module.defined_names()}
    return "__getattr__" in names or not names


def _kilobytes() -> int:
    """The most memory this process has held; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "darwin" else most


if __name__ == "__main__":
    main()
