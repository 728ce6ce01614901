"""One of Gymnasium's environments with random actions, as Gymnasium moves many of them: steps a second, as a JSON line.

    gym_vector.py sync|async|ceiling ID COUNT SECONDS

ceiling: as many processes as cores, each with its share of the environments, which wait for nobody: what any way of moving them in
lock-step comes close to at best. Every episode begins with a seed of its own, as ours do.
"""
import json
import multiprocessing
import os
import sys
import time

import gymnasium

try:
    import ale_py
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
except ImportError:
    pass


def vector(kind, name, count, seconds):
    make = [lambda: gymnasium.make(name, disable_env_checker=True)] * count
    envs = gymnasium.vector.SyncVectorEnv(make) if kind == "sync" else gymnasium.vector.AsyncVectorEnv(make, shared_memory=True)
    envs.reset(seed=1)
    envs.action_space.seed(1)
    actions = [envs.action_space.sample() for _ in range(64)]
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions:
            envs.step(action)
        steps += count * len(actions)
    rate = steps / (time.perf_counter() - start)
    envs.close()
    return rate


def share(name, count, seconds, ready, go, out):
    envs = [gymnasium.make(name, disable_env_checker=True) for _ in range(count)]
    for i, env in enumerate(envs):
        env.reset(seed=i)
    actions = [[env.action_space.sample() for env in envs] for _ in range(64)]
    ready.release()
    go.wait()
    steps, seed, start = 0, count, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for row in actions:
            for env, action in zip(envs, row):
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    seed += 1
                    env.reset(seed=seed)
        steps += count * len(actions)
    out.put(steps / (time.perf_counter() - start))


def ceiling(name, count, seconds):
    context = multiprocessing.get_context("spawn")
    shares = min(len(os.sched_getaffinity(0)), count)
    ready, go, out = context.Semaphore(0), context.Event(), context.Queue()
    processes = [context.Process(target=share, args=(name, count * (i + 1) // shares - count * i // shares, seconds, ready, go, out))
                 for i in range(shares)]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    go.set()
    rate = sum(out.get() for _ in processes)
    for process in processes:
        process.join()
    return rate


if __name__ == "__main__":
    KIND, NAME, COUNT, SECONDS = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    RATE = ceiling(NAME, COUNT, SECONDS) if KIND == "ceiling" else vector(KIND, NAME, COUNT, SECONDS)
    print(json.dumps({"kind": KIND, "env": NAME, "count": COUNT, "steps_per_s": RATE}), flush=True)
