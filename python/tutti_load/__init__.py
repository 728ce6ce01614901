"""A policy that Tutti trained, as a module of PyTorch:

    import tutti_load
    policy = tutti_load.policy("runs/cartpole-ppo-1")   # or a .safetensors file of a run
    action = policy.act(observation)

    state = policy.initial_state()                           # of a recurrent policy, where an episode begins
    action, state = policy.act(observation, state=state)

What it needs besides torch is in the file: the network's layers, the spaces, the normaliser, the weights."""

from .checkpoint import Checkpoint, find
from .network import Policy

__all__ = ["Checkpoint", "Policy", "policy"]


def policy(path, best=False):
    """The policy of a run's directory (its final checkpoint, or its newest while it has none; best: the one with the best mean
    return) or of a checkpoint file. OSError: there is none; ValueError: it is damaged, or not one of Tutti's."""
    return Policy(Checkpoint(find(path, best)))
