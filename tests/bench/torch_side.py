"""The PyTorch side of the comparison: one model trained as its users write it, on tensors in memory or from HDF5.

Started by peer.py, one process a rank (torch.distributed.run where there are several). Rank 0 prints one JSON line:
samples/s over all ranks (median of windows), seconds from the process's start to the end of the first step, and with
--loader the share of the time spent waiting for data.
"""
import argparse
import json
import os
import statistics
import time

STARTED = time.perf_counter()
import torch
from torch import nn


class ConditionalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Linear(784, 128), nn.Linear(128, 64), nn.Linear(64, 10)

    def forward(self, x):
        h = nn.functional.dropout(torch.relu(self.fc1(x.flatten(1))), 0.2, self.training)
        return self.head(torch.relu(self.fc2(h)))


def block(inputs, outputs):
    layers = []
    for i in (inputs, outputs):
        layers += [nn.Conv2d(i, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return layers + [nn.MaxPool2d(2)]


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*block(1, 32), *block(32, 64), nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(),
                                    nn.Dropout(0.25), nn.Linear(128, 10))

    def forward(self, x):
        return self.layers(x)


MODELS = {"conditional-net": ConditionalNet, "convnet": ConvNet}


class Hdf5(torch.utils.data.Dataset):
    """Fashion-MNIST in one HDF5 file, opened by each worker, a sample at a time."""

    def __init__(self, path):
        import h5py
        self.path, self.file = path, None
        with h5py.File(path) as file:
            self.length = len(file["label"])

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        import h5py
        if self.file is None:
            self.file = h5py.File(self.path)
        return torch.from_numpy(self.file["image"][i]).float() / 255, int(self.file["label"][i])


def in_memory(batch, shape, channels_last):
    batches = []
    for _ in range(8):
        x = torch.rand(batch, *shape)
        if channels_last:
            x = x.to(memory_format=torch.channels_last)
        batches.append((x, torch.randint(0, 10, (batch,))))
    while True:
        yield from batches


def from_file(path, batch, workers):
    loader = torch.utils.data.DataLoader(Hdf5(path), batch, shuffle=True, num_workers=workers, drop_last=True,
                                         persistent_workers=workers > 0)
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--batch", type=int, required=True, help="global batch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--loader", help="HDF5 file to read by h5py and a DataLoader")
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    model = MODELS[args.model]()
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
    net = nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
    if args.compile:
        net = torch.compile(net)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    share = args.batch // ranks
    shape = (1, 28, 28) if args.model == "convnet" else (28, 28)
    data = from_file(args.loader, share, args.workers) if args.loader else in_memory(share, shape, args.channels_last)
    waited = 0.0

    def step():
        nonlocal waited
        before = time.perf_counter()
        x, y = next(data)
        waited += time.perf_counter() - before
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    step()
    first = time.perf_counter() - STARTED
    calibrate = time.perf_counter()
    for _ in range(5):
        step()
    window = torch.tensor(max(1, int(args.seconds / 5 / ((time.perf_counter() - calibrate) / 5))))
    if ranks > 1:
        torch.distributed.broadcast(window, 0)
    rates, waited = [], 0.0
    began = time.perf_counter()
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(int(window)):
            step()
        rates.append(int(window) * args.batch / (time.perf_counter() - start))
    if ranks == 1 or torch.distributed.get_rank() == 0:
        print(json.dumps({"samples_per_second": statistics.median(rates), "first_step": first,
                          "data_wait": waited / (time.perf_counter() - began)}), flush=True)
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
