#!/usr/bin/env python3
"""Checks the sources of a tree against the rules of the project, and names each breach by file and line.

usage: check.py ROOT

The rules: who may include whom (below), what stands in a CMakeLists.txt, lengths, first lines, names, words
that have no place here. Exit code 0: clean; 1: breaches, one a line; 64: ROOT is no such tree.
"""
import re
import sys
from pathlib import Path

CODE = {".h", ".cpp", ".cu"}
MAX_LINES = 500

# Folder -> folders whose headers it may include, besides its own. The longest matching folder counts;
# a nested folder belongs to its parent unless it has a line of its own.
BASE = ["core/base"]
DEVICE = BASE + ["core/device"]
TENSOR = DEVICE + ["core/tensor"]
OPS = TENSOR + ["core/ops"]
AUTOGRAD = OPS + ["core/autograd"]
SDK = ["trireme"]
EVERYTHING = ["core", "io"] + SDK
MAY_INCLUDE = {
    "core/base": [],
    "core/device": BASE,
    "core/comm": DEVICE,
    "core/tensor": DEVICE,
    "core/ops": TENSOR,
    "core/backend/cpu": OPS,
    "core/backend/cuda": OPS,
    "core/autograd": OPS,
    "core/optim": AUTOGRAD,
    "core/plugin": AUTOGRAD + SDK,
    "core/train": EVERYTHING,
    "core/launch": EVERYTHING,
    "core/cli": EVERYTHING,
    "core": EVERYTHING,  # main.cpp
    "io": DEVICE,
    "plugins": SDK,
}

# Outside header -> the folders that may include it.
CUDA = ["core/device/cuda", "core/backend/cuda", "core/comm/nccl"]
OUTSIDE = [
    (r"mpi\.h$|mpi-ext\.h$", ["core/comm/mpi"]),
    (r"nccl.*\.h$", ["core/comm/nccl"]),
    (r"hdf5.*\.h$|H5.*\.h$", ["io/hdf5"]),
    (r"(oneapi/)?dnnl", ["core/backend/cpu"]),
    (r"cudnn|cublas", ["core/backend/cuda"]),
    (r"cuda|cooperative_groups|cub/|thrust/|nvtx|nvml", CUDA),
    (r"boost/dll", ["core/plugin"]),
    (r"CLI/", ["core/cli"]),
]
# Slow to compile: never in a header.
SOURCES_ONLY = re.compile(r"toml\+\+/|toml\.hpp|CLI/|spdlog/|nlohmann/|boost/dll")

WORDS = [
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b"), "unfinished work belongs into an issue"),
    (re.compile(r"\b(?:pypi|pythonhosted|npmjs|crates|debian|ubuntu)\.(?:org|com|io|net)\b"), "names a package registry's host"),
    (re.compile(r"(?<![\w./-])/w" r"ork/"), "a path of one machine"),
]
TEXT = CODE | {".py", ".sh", ".cmake", ".txt", ".md", ".toml", ".json", ".in"}
FOLDERS = ["core", "io", "plugins", "tests", "jobscripts", "share", ".ci"]  # and the files beside them
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def files_below(root):
    """All files of the tree that people write, relative to root, in name order."""
    found = [entry for entry in root.iterdir() if entry.is_file()]
    for folder in FOLDERS:
        found += [entry for entry in (root / folder).rglob("*") if entry.is_file() and "__pycache__" not in entry.parts]
    return sorted(entry.relative_to(root) for entry in found)


def lies_in(path, folder):
    return path == folder or path.startswith(folder + "/")


def include_rules(path, lines):
    folder = max((f for f in MAY_INCLUDE if lies_in(path, f)), key=len, default=None)
    if folder is None:  # tests may include what they test
        return
    allowed = MAY_INCLUDE[folder]
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, name = match[1] == '"', match[2]
        where = f"{path}:{number}"
        if name.startswith("plugins/sdk/"):
            name = name[len("plugins/sdk/"):]
        ours = name.split("/")[0] in ("core", "io", "trireme", "plugins")
        if ours:
            if not any(lies_in(name, other) for other in [folder, *allowed]):
                yield f"{where}: include rule: {folder} may not include {name}"
        elif quoted and folder != "plugins":
            yield f'{where}: include rule: "{name}" is not given from the root of the tree'
        for pattern, homes in OUTSIDE:
            if not ours and re.match(pattern, name):
                if not any(lies_in(path, home) for home in homes):
                    yield f"{where}: include rule: {name} belongs to {' and '.join(homes)} alone"
                break
        if path.endswith(".h") and SOURCES_ONLY.match(name):
            yield f"{where}: include rule: {name} is too slow to compile for a header"


def backend_rules(path, lines):
    """The two halves of device and backend never see each other."""
    for here, there in (("cpu", "cuda"), ("cuda", "cpu")):
        if re.match(rf"core/(device|backend)/{here}/", path):
            for number, line in enumerate(lines, 1):
                match = INCLUDE.match(line)
                if match and re.match(rf"core/(device|backend)/{there}/", match[2]):
                    yield f"{path}:{number}: include rule: {here} may not include {match[2]}"


def list_rules(root, path):
    """A source that no CMakeLists.txt names is not built, and a test not run."""
    if path == "core/main.cpp":  # in trireme_program()
        return
    folder = (root / path).parent
    while lies_in(str(folder), str(root)):
        listing = folder / "CMakeLists.txt"
        if listing.exists():
            names = re.escape((root / path).relative_to(folder).as_posix())
            if path.startswith("tests/"):  # whose lists may add the folder themselves
                names += "|" + re.escape(Path(path).name)
            text = re.sub(r"#.*", "", listing.read_text())
            if re.search(rf"(?:^|[\s(\"]|\}}/)(?:{names})(?![\w.-])", text):
                return
        folder = folder.parent
    yield f"{path}:1: no CMakeLists.txt lists this source"


def text_rules(path, lines):
    suffix = Path(path).suffix
    for number, line in enumerate(lines, 1):
        for pattern, why in WORDS:
            match = pattern.search(line)
            if match:
                yield f"{path}:{number}: word {match[0]}: {why}"
    if suffix not in CODE:
        return
    if len(lines) > MAX_LINES:
        yield f"{path}:{len(lines)}: {len(lines)} lines, more than {MAX_LINES}: what is the second thing it does?"
    head = [line for line in lines[:4] if line.strip() and not line.startswith("#")]
    if not head or not head[0].lstrip().startswith(("//", "/*")):
        yield f"{path}:1: does not open with a line that says what it is"
    if suffix == ".h" and not any(re.match(r"#pragma once|#ifndef \w+", line) for line in lines[:60]):
        yield f"{path}:1: header without #pragma once"
    if not re.fullmatch(r"[a-z0-9_]+\.\w+", Path(path).name):
        yield f"{path}:1: a source's name is snake_case"


def check(root):
    breaches = []
    for relative in files_below(root):
        path = relative.as_posix()
        if relative.suffix not in TEXT and relative.name not in (".clang-tidy", "run"):
            continue
        lines = (root / relative).read_text(encoding="utf-8").splitlines()
        breaches += text_rules(path, lines)
        if relative.suffix in CODE:
            breaches += include_rules(path, lines)
            breaches += backend_rules(path, lines)
        if relative.suffix in (".cpp", ".cu") and path.split("/")[0] in ("core", "io", "plugins", "tests"):
            breaches += list_rules(root, path)
    return breaches


def main():
    root = Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else None
    if root is None or not (root / "core").is_dir():
        print(__doc__, file=sys.stderr)
        return 64
    breaches = check(root)
    for breach in breaches:
        print(breach)
    print(f"{len(breaches)} breaches" if breaches else "clean")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
