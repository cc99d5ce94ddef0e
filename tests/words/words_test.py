#!/usr/bin/env python3
"""Every command that README.md and INSTALL.md show is run here, as it stands, or stands in ELSEWHERE with who runs it.

usage: words_test.py SOURCE BUILD

README's commands run in one folder, in their order, with the job of README's own TOML block, on the first samples of
Fashion-MNIST under the names that README uses.
"""
import gzip, json, os, re, shutil, signal, subprocess, sys, tempfile, time

ELSEWHERE = {
    "bash tests/run.sh": "this very run",
    "bash jobscripts/quickstart.sh": "tests/full/quickstart.sh",
    "cmake --build --preset release": "tests/run.sh builds the same",
    'cmake --install build/release --prefix "$HOME/trireme"': "tests/package",
}
FASHION = "/usr/share/datasets/fashion-mnist"


def blocks(path, language):
    return re.findall(r"^```" + language + r"\n(.*?)^```", open(path, encoding="utf-8").read(), re.S | re.M)


def is_script(block):
    return block.startswith("#!")


def commands(path):
    for block in filter(lambda block: not is_script(block), blocks(path, "bash")):
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


def run_job_script(script, job, folder, environment, signal_it):
    """The job script as Slurm runs it, with a scontrol that notes its words: (exit code, requeued, result, output)."""
    os.makedirs(os.path.join(folder, "bin"))
    open(os.path.join(folder, "job.sh"), "w").write(script)
    open(os.path.join(folder, "job.toml"), "w").write(job)
    scontrol = os.path.join(folder, "bin", "scontrol")
    open(scontrol, "w").write(f'#!/bin/sh\necho "$*" >>"{folder}/scontrol"\n')
    os.chmod(scontrol, 0o755)
    environment = dict(environment, SLURM_JOB_ID="4711", SLURM_NTASKS="1",
                       PATH=f"{folder}/bin:{environment['PATH']}", TRIREME_FAULT="event=forward,action=delay,ms=5")
    shell = subprocess.Popen(["bash", "job.sh"], cwd=folder, env=environment, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    metrics = os.path.join(folder, "runs/job/metrics.jsonl")
    until = time.time() + 60
    while signal_it and shell.poll() is None and time.time() < until:
        if os.path.exists(metrics) and os.path.getsize(metrics) > 0:
            shell.send_signal(signal.SIGUSR1)  # to the batch shell alone, as --signal=B: has it
            break
        time.sleep(0.02)
    output = shell.communicate(timeout=200)[0]
    requeued = os.path.join(folder, "scontrol")
    summary = os.path.join(folder, "runs/job/summary.json")
    return (shell.returncode, open(requeued).read() if os.path.exists(requeued) else "",
            json.load(open(summary))["result"] if os.path.exists(summary) else "", output)


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
        # The job script: stopped before the limit it saves and is queued again; done or refused it is not.
        scripts = list(filter(is_script, blocks(install, "bash")))
        assert len(scripts) == 1, "INSTALL.md has one job script"
        long_job = re.sub(r"^epochs = .*", "epochs = 1000", jobs[0], flags=re.M).replace('"data/', f'"{work}/data/')
        for name, job, signal_it, expected in (
                ("stopped", long_job, True, (75, "requeue 4711\n", "stopped")),
                ("done", long_job.replace("epochs = 1000", "steps = 2"), False, (0, "", "done")),
                ("refused", long_job.replace("batch =", "bacth ="), False, (64, "", ""))):
            ran += 1
            *found, output = run_job_script(scripts[0], job, os.path.join(work, "script-" + name), environment, signal_it)
            print(f"{'ok     ' if tuple(found) == expected else 'FAILED '} INSTALL.md's job script, {name}", flush=True)
            if tuple(found) != expected:
                failures.append(f"INSTALL.md's job script, {name}: {found}, expected {expected}")
                print(output[-2000:])
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
