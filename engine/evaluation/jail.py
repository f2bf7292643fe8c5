"""The process in which a program written by a model runs: `sandbox` starts this file with a bare interpreter.

Imports nothing of Remask's. Standard input holds a token on the first line and the program behind it; the token is
written to the file descriptor named by the first argument if the program, its tests included, runs to its end. The
second argument is the memory in bytes, the third the processor time in seconds.

It stops what a model writes by accident, not an attacker who knows it: see docs/evaluation.md.
"""

import ctypes
import os
import resource
import sys

NEW_USER, NEW_NETWORK, NEW_IPC = 0x10000000, 0x40000000, 0x08000000  # flags of unshare(2)
NO_NEW_PRIVILEGES = 38  # of prctl(2)
CREATE_RULESET, RESTRICT_SELF = 444, 446  # landlock's system calls, the same on every architecture
WRITING = 0x1FF3  # landlock's rights of its first version but reading: execute, write, remove, make

FORBIDDEN = (
    "ctypes.",
    "fcntl.",
    "ftplib.",
    "http.",
    "mmap.",
    "os.chflags",
    "os.chmod",
    "os.chown",
    "os.exec",
    "os.fork",
    "os.kill",
    "os.link",
    "os.lockf",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.setxattr",
    "os.spawn",
    "os.symlink",
    "os.system",
    "os.truncate",
    "os.utime",
    "pty.",
    "resource.",
    "shutil.",
    "signal.pthread_kill",
    "smtplib.",
    "socket.",
    "sqlite3.",
    "subprocess.",
    "syslog.",
    "tempfile.",
    "urllib.",
)
READ_ONLY = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)


def limit(memory: int, seconds: int) -> None:
    """Bound what the kernel counts: processor time, memory, file sizes, descriptors, processes; no core files."""
    for kind, most, hard in (
        ("RLIMIT_CPU", seconds, seconds + 1),  # the signal at the soft limit says what happened
        ("RLIMIT_AS", memory, memory),
        ("RLIMIT_FSIZE", 0, 0),
        ("RLIMIT_NOFILE", 32, 32),
        ("RLIMIT_CORE", 0, 0),
        ("RLIMIT_NPROC", 0, 0),
    ):
        number = getattr(resource, kind, None)
        if number is not None:
            try:
                resource.setrlimit(number, (most, hard))
            except (OSError, ValueError):  # macOS refuses some
                continue


def isolate() -> list[str]:
    """Leave the network and the right to write files, where the kernel lets a process do so; says what it did."""
    done: list[str] = []
    if sys.platform != "linux":
        return done
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_USER | NEW_NETWORK | NEW_IPC) == 0 or libc.unshare(NEW_NETWORK | NEW_IPC) == 0:
        done.append("network namespace")
    rights = ctypes.c_uint64(WRITING)
    rules = libc.syscall(CREATE_RULESET, ctypes.byref(rights), ctypes.c_size_t(8), 0)
    if rules >= 0 and libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and libc.syscall(RESTRICT_SELF, rules, 0) == 0:
        done.append("landlock")
    return done


def guard(event: str, args: tuple[object, ...]) -> None:
    """An audit hook (PEP 578): refuses files for writing, processes and the network. It cannot be taken off."""
    if event == "open":
        mode, flags = args[1], args[2]
        writes = isinstance(mode, str) and any(c in mode for c in "wax+")
        if writes or (isinstance(flags, int) and flags & ~READ_ONLY):
            raise PermissionError("a program under test may not write files")
    elif event.startswith(FORBIDDEN):
        raise PermissionError(f"a program under test may not use {event}")


def main() -> None:
    """Take the token and the program, shut the doors, run it."""
    report, memory, seconds = (int(argument) for argument in sys.argv[1:4])
    token, _, program = sys.stdin.buffer.read().partition(b"\n")
    done = isolate()
    limit(memory, seconds)
    write, leave = os.write, os._exit
    sys.argv[1:] = []
    sys.addaudithook(guard)
    write(report, ",".join(done).encode() + b"\n")
    exec(compile(program, "program.py", "exec"), {})  # noqa: S102 - running it is the point
    write(report, token)
    leave(0)


if __name__ == "__main__":
    main()
