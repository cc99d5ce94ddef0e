"""Trireme beside PyTorch, alternating in one run; one JSON line a case. Started by peer.sh."""
import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = {"convnet": 128, "conditional-net": 256}
JOB = """plugin = "{model}"
device = "cpu"
[model]
dropout = {dropout}
[data]
fields = {{ image = "/image", label = "/label" }}
train = ["{files}"]
transform = ["image: scale 1/255"]
classes = 10
[train]
batch = {batch}
steps = 100000
[optimizer]
kind = "adamw"
lr = 1e-3
[run]
dir = "run"
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def tell(case):
    print(json.dumps(case), flush=True)


def run_quietly(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})}, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def last_json(command, environment=None):
    text = run_quietly(command, environment)
    return json.loads(text[text.index("{"):])


class Trireme:
    def __init__(self, program, data):
        self.program, self.data = program, data
        self.folder = tempfile.mkdtemp(prefix="trireme-peer-")

    def job(self, model, files="train-*"):
        path = os.path.join(self.folder, "job.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(JOB.format(model=model, files=os.path.join(self.data, files + ".h5"), batch=BATCH[model],
                                  dropout=0.25 if model == "convnet" else 0.2))
        shutil.rmtree(os.path.join(self.folder, "run"), ignore_errors=True)
        return path

    def command(self, ranks, *words):
        return [self.program, *(["launch", "-n", str(ranks)] if ranks > 1 else []), *words]

    def bench(self, model, ranks, threads, steps, *sets, files="train-*"):
        options = [word for key in (f"train.threads={threads}", *sets) for word in ("--set", key)]
        return last_json(self.command(ranks, "bench", "step", self.job(model, files), "--steps", str(steps), "--warm-up",
                                      str(max(5, steps // 10)), "--json", *options))

    def train(self, model, ranks, *sets, files="train-*"):
        """summary.json of a whole run."""
        options = [word for key in sets for word in ("--set", key)]
        run_quietly(self.command(ranks, "train", self.job(model, files), *options))
        with open(os.path.join(self.folder, "run", "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def seconds_to_first_step(self, model, ranks):
        """From the start of the launcher until the line of the first step is on the console."""
        command = self.command(ranks, "train", self.job(model), "--set", "train.steps=3", "--set", "run.log_every_steps=1",
                               "--set", "train.threads=1")
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "step 1/" in line:
                    seconds = time.perf_counter() - start
                    process.stdout.read()
                    return seconds
        sys.exit(f"no first step:\n{''.join(lines)}")


class Torch:
    def __init__(self, python):
        self.python = python

    def run(self, model, ranks, threads, seconds, *options):
        side = [os.path.join(HERE, "torch_side.py"), model, "--batch", str(BATCH[model]), "--threads", str(threads),
                "--seconds", str(seconds), *options]
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)] if ranks > 1 else []
        return last_json([self.python, *launch, *side], {"OMP_NUM_THREADS": str(threads)})


def step(trireme, peer, args):
    """Steps of both models: Trireme reads HDF5, PyTorch has its tensors in memory."""
    for model, (ranks, threads) in itertools.product(BATCH, ((1, 2), (2, 1))):
        settings = {"eager": []}
        if model == "convnet":
            settings["eager channels-last"] = ["--channels-last"]
        compiled = ["--compile", *(["--channels-last"] if model == "convnet" else [])]
        rates = {name: [] for name in (*settings, "compiled")}
        ours, floors = [], []
        steps = max(20, int(args.seconds / trireme.bench(model, ranks, threads, 20)["step"]))
        for _ in range(args.rounds):
            bench = trireme.bench(model, ranks, threads, steps)
            ours.append(bench["samples_per_second"])
            floors.append(bench["of_floor"])
            for name, options in (*settings.items(), ("compiled", compiled)):
                rates[name].append(peer.run(model, ranks, threads, args.seconds, *options)["samples_per_second"])
            say(f"{model}, {ranks} rank(s): trireme {ours[-1]:.0f}, "
                + ", ".join(f"{name} {values[-1]:.0f}" for name, values in rates.items()))
        best = max(settings, key=lambda name: statistics.median(rates[name]))
        eager, fast, own = (statistics.median(v) for v in (rates[best], rates["compiled"], ours))
        tell({"case": "step", "model": model, "ranks": ranks, "threads": threads, "batch": BATCH[model],
              "trireme": round(own), "eager": round(eager), "eager_setting": best, "compiled": round(fast),
              "to_eager": round(own / eager, 2), "to_compiled": round(own / fast, 2),
              "of_floor": round(statistics.median(floors), 2)})


def start(trireme, peer, args):
    """Seconds to the end of the first step on two ranks; PyTorch's are counted from its ranks' own start."""
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(trireme.seconds_to_first_step("convnet", 2))
        theirs.append(peer.run("convnet", 2, 1, 0.5)["first_step"])
    tell({"case": "start", "model": "convnet", "ranks": 2, "trireme": round(statistics.median(ours), 2),
          "eager": round(statistics.median(theirs), 2)})


def loader(trireme, peer, args):
    """conditional-net from gzip-compressed, shuffled Fashion-MNIST; PyTorch by h5py and a DataLoader, with 0 and 2 workers."""
    ours, waits, theirs = [], [], {0: [], 2: []}
    for _ in range(args.rounds):
        summary = trireme.train("conditional-net", 1, "train.steps=0", "train.epochs=20", "train.threads=2", files="gzip-*")
        ours.append(summary["samples_per_second"])
        waits.append(summary["data_wait_share"])
        for workers, rates in theirs.items():
            rates.append(peer.run("conditional-net", 1, 2, args.seconds, "--loader",
                                  os.path.join(trireme.data, "gzip-00000-of-00001.h5"), "--workers", str(workers)))
    best = max(theirs, key=lambda w: statistics.median(r["samples_per_second"] for r in theirs[w]))
    own, eager = statistics.median(ours), statistics.median(r["samples_per_second"] for r in theirs[best])
    tell({"case": "loader", "model": "conditional-net", "trireme": round(own), "eager": round(eager), "workers": best,
          "to_eager": round(own / eager, 1), "data_wait": round(statistics.median(waits), 4),
          "eager_data_wait": round(statistics.median(r["data_wait"] for r in theirs[best]), 3)})


def save(trireme, _, args):
    """convnet saved every 20 steps beside never: the share of the run that waits, and how much slower steps become."""
    stalls, slower = [], []
    for _ in range(args.rounds):
        plain = trireme.train("convnet", 2, "train.steps=120", "train.threads=1")
        saving = trireme.train("convnet", 2, "train.steps=120", "train.threads=1", "checkpoint.every_steps=20")
        stalls.append(saving["save_stall_share"])
        slower.append(plain["samples_per_second"] / saving["samples_per_second"])
    tell({"case": "save", "model": "convnet", "ranks": 2, "stall": round(statistics.median(stalls), 4),
          "steps_slower": round(statistics.median(slower), 3)})


def growth(trireme, *_):
    """Milliseconds of a step against batch, parameters, ranks and number of files, one of them at a time."""
    def line(what, value, bench):
        tell({"case": "growth", "what": what, "value": value, "step_ms": round(bench["step"] * 1e3, 3),
              "samples_per_second": round(bench["samples_per_second"]), "of_floor": round(bench["of_floor"], 2),
              "comm_wait_ms": round(bench["comm_wait"] * 1e3, 3), "data_wait_ms": round(bench["data_wait"] * 1e3, 3)})
    for batch in (32, 128, 512, 2048):
        line("batch", batch, trireme.bench("convnet", 1, 2, 20, f"train.batch={batch}"))
    for hidden in (1200, 4000, 12000, 35000):
        bench = trireme.bench("conditional-net", 1, 2, 50, f"model.hidden={hidden}")
        line("parameters", 784 * hidden + hidden + 64 * hidden + 64 + 650, bench)
    for ranks in (1, 2, 4, 8):
        line("ranks", ranks, trireme.bench("convnet", ranks, 1, 20, "train.micro_batches=8"))
    for files in (1, 10, 100, 1000):
        folder = os.path.join(trireme.folder, f"files-{files}")
        os.makedirs(folder)
        source = os.path.join(trireme.data, "gzip-00000-of-00001.h5")
        run_quietly([trireme.program, "pack", "--field", f"image={source}:/image", "--field", f"label={source}:/label",
                     "--files", str(files), "--chunk-rows", "32", "--output", os.path.join(folder, "train")])
        line("files", files, trireme.bench("conditional-net", 1, 2, 500, files=os.path.join(folder, "train-*")))
        shutil.rmtree(folder)


CASES = {"step": step, "start": start, "loader": loader, "save": save, "growth": growth}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trireme", required=True)
    parser.add_argument("--data", required=True, help="folder of packed Fashion-MNIST")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement")
    args = parser.parse_args()
    names = args.cases.split(",")
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"--cases: unknown {', '.join(unknown)}; known are {', '.join(CASES)}")
    trireme, peer = Trireme(args.trireme, args.data), Torch(sys.executable)
    try:
        for name in names:
            CASES[name](trireme, peer, args)
    finally:
        shutil.rmtree(trireme.folder)


if __name__ == "__main__":
    main()
