#!/usr/bin/env python3
"""gloo_allreduce.py ROUNDS BYTES... - the median time of torch.distributed's gloo all-reduce between two processes of this
machine, one JSON line a size. `./dev bench allreduce` runs it in Stable-Baselines3's environment, which has torch."""
import json
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WARM_UP = 100


def work(rank, folder, rounds, sizes):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "meet"), rank=rank, world_size=2)
    for size in sizes:
        tensor = torch.zeros(size // 4)
        took = []
        for _ in range(WARM_UP + rounds):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(tensor)
            took.append(time.perf_counter() - start)
        if rank == 0:
            print(json.dumps({"bytes": size, "median_us": statistics.median(took[WARM_UP:]) * 1e6}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tt-peer-") as where:
        mp.spawn(work, (where, int(sys.argv[1]), [int(size) for size in sys.argv[2:]]), nprocs=2)
