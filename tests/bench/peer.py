"""Trireme beside PyTorch, alternating in one run; one JSON line a case. Started by peer.sh."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = {"convnet": 128, "conditional-net": 256}
JOB = """plugin = "{model}"
device = "cpu"
[model]
dropout = {dropout}
[data]
fields = {{ image = "/image", label = "/label" }}
train = ["{data}/train-*.h5"]
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


def last_json(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})}, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    text = done.stdout
    return json.loads(text[text.index("{"):])


class Trireme:
    def __init__(self, program, folder, data):
        self.program, self.folder, self.data = program, folder, data

    def job(self, model):
        path = os.path.join(self.folder, model + ".toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(JOB.format(model=model, data=self.data, batch=BATCH[model],
                                  dropout=0.25 if model == "convnet" else 0.2))
        return path

    def step(self, model, ranks, threads, steps):
        launch = ["launch", "-n", str(ranks)] if ranks > 1 else []
        return last_json([self.program, *launch, "bench", "step", self.job(model), "--set", f"train.threads={threads}",
                          "--steps", str(steps), "--warm-up", str(max(5, steps // 10)), "--json"])

    def first_step(self, model, ranks):
        """Seconds from the start of `trireme launch` to the end of the first step."""
        path = os.path.join(self.folder, "run")
        subprocess.run(["rm", "-rf", path], check=True)
        start = time.perf_counter()
        process = subprocess.Popen([self.program, "launch", "-n", str(ranks), "train", self.job(model), "--set",
                                    "train.steps=1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _, errors = process.communicate()
        if process.returncode != 0:
            sys.exit(f"trireme launch ended with {process.returncode}:\n{errors}")
        whole = time.perf_counter() - start
        with open(os.path.join(path, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        return {"first_step": whole - summary["after_first_step_seconds"], "whole": whole}


class Torch:
    def __init__(self, python):
        self.python = python

    def run(self, model, ranks, threads, seconds, *options):
        side = [os.path.join(HERE, "torch_side.py"), model, "--batch", str(BATCH[model]), "--threads", str(threads),
                "--seconds", str(seconds), *options]
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)] if ranks > 1 else []
        return last_json([self.python, *launch, *side], {"OMP_NUM_THREADS": str(threads)})


def compare(trireme, peer, model, ranks, threads, rounds, seconds):
    settings = {"eager": []}
    if model == "convnet":
        settings["eager channels-last"] = ["--channels-last"]
    compiled = ["--compile", *(["--channels-last"] if model == "convnet" else [])]
    rates = {name: [] for name in [*settings, "compiled"]}
    ours, floors = [], []
    steps = 20
    for round_ in range(rounds):
        bench = trireme.step(model, ranks, threads, steps)
        steps = max(20, int(seconds / bench["step"]))
        if round_ == 0:
            bench = trireme.step(model, ranks, threads, steps)
        ours.append(bench["samples_per_second"])
        floors.append(bench["of_floor"])
        for name, options in settings.items():
            rates[name].append(peer.run(model, ranks, threads, seconds, *options)["samples_per_second"])
        rates["compiled"].append(peer.run(model, ranks, threads, seconds, *compiled)["samples_per_second"])
        say(f"{model}, {ranks} rank(s), {threads} thread(s), round {round_ + 1}: trireme {ours[-1]:.0f}, "
            + ", ".join(f"{name} {values[-1]:.0f}" for name, values in rates.items()))
    best = max(settings, key=lambda name: statistics.median(rates[name]))
    eager, fast, own = (statistics.median(v) for v in (rates[best], rates["compiled"], ours))
    return {"case": "step", "model": model, "ranks": ranks, "threads": threads, "batch": BATCH[model],
            "trireme": round(own), "eager": round(eager), "eager_setting": best, "compiled": round(fast),
            "to_eager": round(own / eager, 2), "to_compiled": round(own / fast, 2),
            "of_floor": round(statistics.median(floors), 2)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trireme", required=True)
    parser.add_argument("--data", required=True, help="folder of packed Fashion-MNIST")
    parser.add_argument("--folder", required=True, help="for jobs and runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement")
    parser.add_argument("--models", default="convnet,conditional-net")
    args = parser.parse_args()
    trireme, peer = Trireme(args.trireme, args.folder, args.data), Torch(sys.executable)
    for model in args.models.split(","):
        for ranks, threads in ((1, 2), (2, 1)):
            print(json.dumps(compare(trireme, peer, model, ranks, threads, args.rounds, args.seconds)), flush=True)


if __name__ == "__main__":
    main()
