#!/usr/bin/env python3
"""PPO in JAX as PureJaxRL does it: environment, rollout and update in one compiled program; gymnax's CartPole-v1 and
CleanRL's settings (4 envs x 128 steps, 4 epochs of 4 minibatches). On CPU."""
from probe import prepare

ARGS = prepare("jax", __doc__, 500_000)

import os  # noqa: E402
from importlib.metadata import version  # noqa: E402

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import gymnax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from probe import Probe, age  # noqa: E402

ENVS, STEPS, EPOCHS, MINIBATCHES = 4, 128, 4, 4
RATE, GAMMA, LAMBDA, CLIP, ENTROPY, VALUE, NORM = 2.5e-4, 0.99, 0.95, 0.2, 0.01, 0.5, 0.5
BATCH = ENVS * STEPS
UPDATES = max(1, ARGS.steps // BATCH)
ENV, PARAMS = gymnax.make("CartPole-v1")


def network(key, sizes, last):
    """Weights and biases of one multi-layer perceptron; orthogonal, gain sqrt(2) and `last` for the output."""
    gains = [2.0 ** 0.5] * (len(sizes) - 2) + [last]
    keys = jax.random.split(key, len(gains))
    return [(jax.nn.initializers.orthogonal(gain)(k, (n, m)), jnp.zeros(m))
            for k, gain, n, m in zip(keys, gains, sizes, sizes[1:])]


def apply(layers, x):
    for weight, bias in layers[:-1]:
        x = jnp.tanh(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


def both(net, obs):
    """Log-probabilities of the two actions, and the value."""
    return jax.nn.log_softmax(apply(net["policy"], obs)), apply(net["value"], obs)[..., 0]


def pick(log_probs, action):
    return jnp.take_along_axis(log_probs, action[..., None], -1)[..., 0]


def rollout(net, env_state, obs, total, key):
    """T steps of all envs; `total` is the return of each episode so far."""
    def step(carry, step_key):
        env_state, obs, total = carry
        act_key, env_key = jax.random.split(step_key)
        log_probs, value = both(net, obs)
        action = jax.random.categorical(act_key, log_probs)
        after, env_state, reward, terminated, truncated, _ = jax.vmap(ENV.step, (0, 0, 0, None))(
            jax.random.split(env_key, ENVS), env_state, action, PARAMS)
        done = jnp.logical_or(terminated, truncated)
        total = total + reward
        seen = (obs, action, pick(log_probs, action), value, reward, done, total)
        return (env_state, after, jnp.where(done, 0.0, total)), seen
    return jax.lax.scan(step, (env_state, obs, total), jax.random.split(key, STEPS))


def advantages(value, reward, done, last):
    """Generalised advantage estimation, backwards over the rollout."""
    def step(carry, now):
        following, ahead = carry
        v, r, d = now
        keep = 1.0 - d
        following = r + GAMMA * ahead * keep - v + GAMMA * LAMBDA * keep * following
        return (following, v), following
    _, out = jax.lax.scan(step, (jnp.zeros(ENVS), last), (value, reward, done.astype(jnp.float32)), reverse=True)
    return out


def loss(net, rows):
    obs, action, old_log_prob, old_value, advantage, target = rows
    log_probs, value = both(net, obs)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = jnp.exp(pick(log_probs, action) - old_log_prob)
    policy = -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage).mean()
    clipped = old_value + jnp.clip(value - old_value, -CLIP, CLIP)
    error = 0.5 * jnp.maximum((value - target) ** 2, (clipped - target) ** 2).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
    return policy - ENTROPY * entropy + VALUE * error


def adam(net, moments, grads, rate):
    """One step of Adam (eps 1e-5) after clipping the gradient's global norm."""
    first, second, count = moments
    norm = jnp.sqrt(sum((g ** 2).sum() for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, NORM / (norm + 1e-6)), grads)
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
    net = jax.tree.map(lambda p, m, v: p - rate * (m / (1 - 0.9 ** count)) / (jnp.sqrt(v / (1 - 0.999 ** count)) + 1e-5),
                       net, first, second)
    return net, (first, second, count)


def learn(net, moments, batch, rate, key):
    def minibatch(carry, rows):
        net, moments = carry
        return adam(net, moments, jax.grad(loss)(net, rows), rate), None

    def epoch(carry, epoch_key):
        order = jax.random.permutation(epoch_key, BATCH)
        rows = jax.tree.map(lambda x: x[order].reshape((MINIBATCHES, -1) + x.shape[1:]), batch)
        return jax.lax.scan(minibatch, carry, rows)
    (net, moments), _ = jax.lax.scan(epoch, (net, moments), jax.random.split(key, EPOCHS))
    return net, moments


def update(carry, number):
    """One batch collected and learnt; gives the returns of the episodes that ended in it."""
    net, moments, env_state, obs, total, key = carry
    key, rollout_key, learn_key = jax.random.split(key, 3)
    (env_state, obs, total), seen = rollout(net, env_state, obs, total, rollout_key)
    state, action, log_prob, value, reward, done, returns = seen
    advantage = advantages(value, reward, done, both(net, obs)[1])
    batch = jax.tree.map(lambda x: x.reshape((BATCH,) + x.shape[2:]),
                         (state, action, log_prob, value, advantage, advantage + value))
    net, moments = learn(net, moments, batch, RATE * (1.0 - number / UPDATES), learn_key)
    return (net, moments, env_state, obs, total, key), (done, returns)


def train(key):
    policy_key, value_key, reset_key, key = jax.random.split(key, 4)
    net = {"policy": network(policy_key, (4, 64, 64, 2), 0.01), "value": network(value_key, (4, 64, 64, 1), 1.0)}
    zeros = jax.tree.map(jnp.zeros_like, net)
    obs, env_state = jax.vmap(ENV.reset, (0, None))(jax.random.split(reset_key, ENVS), PARAMS)
    carry = (net, (zeros, zeros, 0), env_state, obs, jnp.zeros(ENVS), key)
    return jax.lax.scan(update, carry, jnp.arange(UPDATES))[1]


def main():
    """The program tells nothing before its end: an update's time is its share of the whole."""
    probe = Probe("JAX, as PureJaxRL", {"jax": jax.__version__, "gymnax": version("gymnax")}, ARGS.wall_s)
    key = jax.random.PRNGKey(ARGS.seed)
    program = jax.jit(train).lower(key).compile()
    probe.step(0)
    begin = age()
    done, returns = (x.reshape(-1, ENVS) for x in jax.block_until_ready(program(key)))
    took = age() - begin
    probe.step(UPDATES * BATCH)
    done, returns = jax.device_get((done, returns))
    for t in range(len(done)):
        for env in range(ENVS):
            if done[t][env]:
                share = (t // STEPS + 1) / UPDATES
                probe.episode(float(returns[t][env]), begin + took * share, (t + 1) * ENVS)
    probe.finish(sps=UPDATES * BATCH / took, wall_s=begin + took)


main()
