#!/usr/bin/env python3
"""Tests check.py: plants each kind of breach in a small tree and expects it named by file and line."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKER = Path(__file__).with_name("check.py")

CLEAN = {
    "CMakeLists.txt": "add_subdirectory(core)\n",
    "core/main.cpp": '// The program.\n#include "core/cli/cli.h"\n',
    "core/cli/cli.h": '// Subcommands.\n#pragma once\n#include "core/train/loop.h"\n#include "io/hdf5/file.h"\n',
    "core/cli/CMakeLists.txt": "trireme_folder(cli SOURCES cli.cpp)\n",
    "core/cli/cli.cpp": '// Subcommands.\n#include <CLI/CLI.hpp>\n#include "core/cli/cli.h"\n',
    "core/base/error.h": "// Errors.\n#pragma once\n#include <string>\n",
    "core/device/stream.h": '// Streams.\n#pragma once\n#include "core/base/error.h"\n',
    "core/device/CMakeLists.txt": "trireme_folder(device SOURCES\n  cpu/stream.cpp)  # cuda/ has its own\n",
    "core/device/cpu/stream.cpp": '// Inline.\n#include "core/device/stream.h"\n',
    "core/device/cuda/CMakeLists.txt": "trireme_cuda_sources(stream.cu)\n",
    "core/device/cuda/stream.cu": '// CUDA.\n#include <cuda_runtime.h>\n#include "core/device/stream.h"\n',
    "core/comm/mpi/CMakeLists.txt": "trireme_folder(mpi SOURCES group.cpp)\n",
    "core/comm/mpi/group.cpp": '// Ranks.\n#include <mpi.h>\n#include "core/device/stream.h"\n',
    "core/train/loop.h": '// The loop.\n#pragma once\n#include "core/comm/group.h"\n#include "trireme/abi.h"\n',
    "io/hdf5/file.h": '// A file.\n#pragma once\n#include <hdf5.h>\n#include "core/base/error.h"\n',
    "plugins/sdk/trireme/model.h": '// Models.\n#pragma once\n#include <trireme/abi.h>\n',
    "plugins/net/CMakeLists.txt": "trireme_add_plugin(net net.cpp)\n",
    "plugins/net/net.cpp": '// A net.\n#include <trireme/model.h>\n',
}

# What is planted: file, its text, and what the checker has to say of it.
PLANTED = [
    ("core/base/bad.h", '// x\n#pragma once\n#include "core/device/stream.h"\n', "core/base/bad.h:3: include rule: core/base may not include core/device/stream.h"),
    ("core/autograd/bad.h", '// x\n#pragma once\n#include "core/comm/group.h"\n', "core/autograd may not include core/comm/group.h"),
    ("core/ops/bad.h", '// x\n#pragma once\n#include "core/autograd/tape.h"\n', "core/ops may not include core/autograd/tape.h"),
    ("core/plugin/bad.h", '// x\n#pragma once\n#include "core/optim/update.h"\n', "core/plugin may not include core/optim/update.h"),
    ("core/comm/mpi/bad.h", '// x\n#pragma once\n#include "core/tensor/tensor.h"\n', "core/comm may not include core/tensor/tensor.h"),
    ("core/tensor/bad.h", '// x\n#pragma once\n#include "trireme/abi.h"\n', "core/tensor may not include trireme/abi.h"),
    ("core/backend/cpu/bad.h", '// x\n#pragma once\n#include "core/backend/cuda/relu.h"\n', "cpu may not include core/backend/cuda/relu.h"),
    ("io/feed/bad.h", '// x\n#pragma once\n#include "core/comm/group.h"\n', "io may not include core/comm/group.h"),
    ("plugins/net/bad.h", '// x\n#pragma once\n#include "core/base/error.h"\n', "plugins may not include core/base/error.h"),
    ("core/train/bad.h", '// x\n#pragma once\n#include <mpi.h>\n', "mpi.h belongs to core/comm/mpi alone"),
    ("core/comm/bad.h", '// x\n#pragma once\n#include <mpi.h>\n', "mpi.h belongs to core/comm/mpi alone"),
    ("io/dataset/bad.h", '// x\n#pragma once\n#include <hdf5.h>\n', "hdf5.h belongs to io/hdf5 alone"),
    ("core/ops/bad.h", '// x\n#pragma once\n#include "oneapi/dnnl/dnnl.hpp"\n', "oneapi/dnnl/dnnl.hpp belongs to core/backend/cpu alone"),
    ("core/device/cpu/bad.h", '// x\n#pragma once\n#include <cuda_runtime.h>\n', "cuda_runtime.h belongs to core/device/cuda"),
    ("core/train/bad.h", '// x\n#pragma once\n#include <boost/dll/shared_library.hpp>\n', "boost/dll/shared_library.hpp belongs to core/plugin alone"),
    ("core/base/bad.h", "// x\n#pragma once\n#include <nlohmann/json.hpp>\n", "too slow to compile for a header"),
    ("core/base/bad.h", '// x\n#pragma once\n#include "error.h"\n', "not given from the root"),
    ("core/cli/forgotten.cpp", "// x\n", "core/cli/forgotten.cpp:1: no CMakeLists.txt lists this source"),
    ("core/base/lonely.cpp", "// x\n", "core/base/lonely.cpp:1: no CMakeLists.txt lists this source"),
    ("tests/base/lonely_test.cpp", "// x\n", "tests/base/lonely_test.cpp:1: no CMakeLists.txt"),
    ("core/base/long.h", "// x\n#pragma once\n" + "\n" * 499, "501 lines, more than 500"),
    ("core/base/bare.h", "#pragma once\nint a();\n", "core/base/bare.h:1: does not open with a line that says what it is"),
    ("core/base/twice.h", "// x\nint a();\n", "header without #pragma once"),
    ("core/base/BadName.h", "// x\n#pragma once\n", "snake_case"),
    ("core/base/later.h", "// x\n#pragma once\n// TO" "DO\n", "core/base/later.h:3: word TO" "DO"),
    ("README.md", "fetched from py" "pi.org\n", "README.md:1: word py" "pi.org: names a package registry"),
    ("jobscripts/run.sh", "cd /w" "ork/main\n", "a path of one machine"),
]


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def run_checker(root):
    done = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True)
    return done.returncode, done.stdout


class CheckerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for path, text in CLEAN.items():
            write(self.root, path, text)

    def test_clean_tree_passes(self):
        self.assertEqual(run_checker(self.root), (0, "clean\n"))

    def test_each_planted_breach_is_named_alone(self):
        for path, text, words in PLANTED:
            with self.subTest(path=path, words=words):
                before = CLEAN.get(path)
                write(self.root, path, text)
                code, output = run_checker(self.root)
                self.assertEqual(code, 1)
                self.assertIn(words, output)
                self.assertIn(f"\n{output.count(chr(10)) - 1} breaches\n", output)
                if before is None:
                    (self.root / path).unlink()
                else:
                    write(self.root, path, before)

    def test_source_named_in_a_comment_is_not_listed(self):
        write(self.root, "core/device/CMakeLists.txt", "trireme_folder(device SOURCES)  # cpu/stream.cpp\n")
        self.assertIn("core/device/cpu/stream.cpp:1: no CMakeLists.txt", run_checker(self.root)[1])

    def test_built_folders_are_not_read(self):
        write(self.root, "build-x/core/Bad.cpp", "TO" "DO\n")
        self.assertEqual(run_checker(self.root)[0], 0)

    def test_no_tree_is_a_usage_error(self):
        self.assertEqual(run_checker(self.root / "core/base")[0], 64)


if __name__ == "__main__":
    unittest.main()
