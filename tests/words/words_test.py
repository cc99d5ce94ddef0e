#!/usr/bin/env python3
"""Every command that README.md and INSTALL.md show is run here, as it stands, or stands in ELSEWHERE with who runs it.

usage: words_test.py SOURCE BUILD

README's commands run in one folder, in their order, with the job of README's own TOML block, on the first samples of
Fashion-MNIST under the names that README uses.
"""
import gzip, os, re, shutil, subprocess, sys, tempfile

ELSEWHERE = {
    "bash tests/run.sh": "this very run",
    "bash jobscripts/quickstart.sh": "tests/full/quickstart.sh",
    "cmake --build --preset release": "tests/run.sh builds the same",
    'cmake --install build/release --prefix "$HOME/trireme"': "tests/package",
}
FASHION = "/usr/share/datasets/fashion-mnist"


def blocks(path, language):
    return re.findall(r"^```" + language + r"\n(.*?)^```", open(path, encoding="utf-8").read(), re.S | re.M)


def commands(path):
    for block in blocks(path, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#.*", "", line).strip()
            if line and not line.startswith("#"):
                yield line


def small_idx(name, folder, samples):
    data = gzip.open(f"{FASHION}/{name}").read()
    rank = data[3]
    extents = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(rank)]
    each = 1
    for extent in extents[1:]:
        each *= extent
    header = data[:4] + samples.to_bytes(4, "big") + data[8:4 + 4 * rank]
    with gzip.open(f"{folder}/{name}", "wb") as out:
        out.write(header + data[len(header):len(header) + samples * each])


def main():
    source, build = map(os.path.abspath, sys.argv[1:3])
    work = tempfile.mkdtemp(prefix="trireme-words-")
    home = os.path.join(work, "home")
    os.makedirs(home)
    environment = dict(os.environ, HOME=home, PATH=f"{build}/bin:{os.environ['PATH']}", OMP_WAIT_POLICY="passive")
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    environment.update(OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_plm="isolated")
    failures, ran = [], 0

    def run(line, folder):
        nonlocal ran
        ran += 1
        done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        print(f"{'ok     ' if done.returncode == 0 else 'FAILED '} {line}", flush=True)
        if done.returncode != 0:
            failures.append(line)
            print(done.stdout[-2000:])
        return done.stdout

    try:
        for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                     "t10k-labels-idx1-ubyte.gz"):
            small_idx(name, work, 512)
        readme, install = os.path.join(source, "README.md"), os.path.join(source, "INSTALL.md")
        jobs = blocks(readme, "toml")
        assert len(jobs) == 1, "README.md has one job"
        open(os.path.join(work, "job.toml"), "w").write(jobs[0])
        for line in commands(readme):
            if line not in ELSEWHERE:
                run(line, work)
        # INSTALL's first steps, in a copy: they write into the source tree.
        copy = os.path.join(work, "source")
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build*", "quickstart", ".git"))
        for line in commands(install):
            if line not in ELSEWHERE:
                run(line, copy)
        # What the words say about code must be the code.
        listing = open(os.path.join(source, "plugins/conditional-net/conditional_net.cpp"), encoding="utf-8").read()
        if listing.strip() not in open(readme, encoding="utf-8").read():
            failures.append("README.md's plugin is not plugins/conditional-net/conditional_net.cpp")
        page = subprocess.run([f"{build}/bin/trireme", "train", "--help-keys", "--markdown"], text=True, capture_output=True).stdout
        if page.strip() != open(os.path.join(source, "share/jobs/keys.md"), encoding="utf-8").read().strip():
            failures.append("share/jobs/keys.md differs from trireme train --help-keys --markdown: write it anew")
        presets = subprocess.run(["cmake", "--list-presets=configure"], cwd=source, text=True, capture_output=True).stdout
        for preset in re.findall(r"--preset ([a-z-]+)", open(install, encoding="utf-8").read()):
            if f'"{preset}"' not in presets:
                failures.append(f"INSTALL.md: no preset {preset}")
        for document in ("README.md", "INSTALL.md", "ARCHITECTURE.md"):
            text = open(os.path.join(source, document), encoding="utf-8").read()
            for path in re.findall(r"`((?:core|io|plugins|tests|share|jobscripts)/[\w./*-]+)`", text):
                if not os.path.exists(os.path.join(source, path.replace("/*", ""))) and not path.startswith("tests/full/quick"):
                    failures.append(f"{document} names {path}, which is not there")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for failure in failures:
        print("FAILED ", failure)
    print(f"{ran} commands ran, {len(failures)} failures")
    return 1 if failures or ran < 10 else 0


sys.exit(main())
