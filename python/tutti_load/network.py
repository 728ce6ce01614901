"""The policy: from what an environment shows to what to do."""

import math
import re

import torch

from . import recurrent, spaces
from .encoder import ACTIVATIONS, POOLS, Encoder, flat_words, words_of

TOWERS = ("encoder", "actor_encoder", "critic_encoder", *recurrent.NAMES, "trunk", "actor", "critic", "value", "advantage", "quantiles", "atoms", "q", "q1", "q2")
EPSILON = 1e-8  # under the normaliser's root


class Normalizer(torch.nn.Module):
    """Of all float numbers of an observation, in double precision, as the trainer does it. block: count, means, and the sums of the
    squares of the deviations."""

    def __init__(self, block, clip):
        super().__init__()
        n = (len(block) - 1) // 2
        self.clip = clip
        self.register_buffer("mean", block[1:1 + n].clone())
        self.register_buffer("deviation", torch.sqrt(block[1 + n:] / block[0] + EPSILON))

    def forward(self, x):
        return torch.clip((x.double() - self.mean) / self.deviation, -self.clip, self.clip).float()


def _for_frames(block, leaves, frames):
    """A normaliser's block knows the numbers of one frame; all frames of a leaf are scaled alike."""
    n, at, found = (len(block) - 1) // 2, 1, ([], [])
    for size in (leaf.elements // frames for leaf in leaves if leaf.floats):
        for half, values in enumerate(found):
            values.append(block[at + half * n:at + half * n + size].repeat(frames))
        at += size
    return torch.cat([block[:1], *found[0], *found[1]])


def _atoms(low, high, count):
    """The values that a return may have; None: there are none."""
    return torch.linspace(float(low), float(high), int(count)) if int(count) else None


_WIDER = {"uint16": "int32", "uint32": "int64"}  # NumPy's that PyTorch does not have, or in part: as training has them


def _tensor(value, device):
    wider = _WIDER.get(str(getattr(value, "dtype", None)))
    return torch.as_tensor(value.astype(wider) if wider else value, device=device)


class _Moment:
    """A step. parts: of the observation, by their keys; one: it was without a batch; given: what recurrent towers give, by who reads it;
    state: for the next step."""

    def __init__(self, parts, one):
        self.parts, self.one, self.given, self.state = parts, one, {}, None

    def answer(self, found):
        return found if self.state is None else (found, self.state[0] if self.one else self.state)


class Policy(torch.nn.Module):
    """Its modules have the names of the file's arrays. Observations are those of the environment, as they are: a tensor or array, or
    a dict or tuple of them; one, or a batch with one more dimension before the others. What comes back is alike.

    A recurrent policy carries a state from step to step: a tensor [rows][policy.state_size], zeros where an episode begins. What is
    asked of it comes back in a pair with the state for the next step. Of any other the size is 0, and there is no such pair."""

    def __init__(self, checkpoint):
        super().__init__()
        setting = checkpoint.setting
        try:
            self.obs_space, self.action_space = (spaces.parse(setting("space", key)) for key in ("obs", "action"))
        except (TypeError, ValueError) as unknown:
            raise ValueError(f"{checkpoint.path}: {unknown}") from None
        self._frames = int(setting("env", "stack", "1"))
        self._squash = setting("actor", "squash", "false") == "true"
        self._state_std = setting("actor", "state_std", "false") == "true"
        self._means = setting("actor", "kind", "sample") == "mean"
        self._quantiles = int(setting("actor", "quantiles", "0")) > 0
        self._atoms = _atoms(*(setting("actor", key, "0") for key in ("v_min", "v_max", "atoms")))
        self._observed = spaces.stacked(spaces.leaves(self.obs_space, "obs"), self._frames)
        self._parts = spaces.leaves(self.action_space, "action")
        self.env, self.update = checkpoint.metadata.get("env"), int(checkpoint.array("tutti.update")[0])
        self.normalizer, self._divisor = None, float(setting("space", "divisor", "1"))
        if setting("normalize", "obs") == "true":
            block = checkpoint.array(f"tutti.version.{self.update}.norm")
            self.normalizer = Normalizer(_for_frames(block, self._observed, self._frames), float(setting("normalize", "clip_obs")))
        self._build(checkpoint)
        self.requires_grad_(False).eval()

    def _build(self, checkpoint):
        towers = [name for name in checkpoint.names() if name.split(".")[0] in TOWERS and not name.endswith("_sigma")]  # it acts without noise
        weights = {name: checkpoint.array(name) for name in towers}
        layers = words_of(checkpoint.setting("network", "encoder", "none"))
        self._picture = self._find_picture(layers, checkpoint.setting("network", "picture", ""))
        activation = ACTIVATIONS[checkpoint.setting("network", "activation")]
        for tower in TOWERS:
            own = {name[len(tower) + 1:]: value for name, value in weights.items() if name.startswith(f"{tower}.")}
            if own and tower.endswith("encoder"):
                parts, shapes = {_key(leaf): leaf.n for leaf in self._observed}, {name: value.shape for name, value in own.items()}
                self.add_module(tower, Encoder(layers, self._picture, parts, shapes, self._frames))
            elif own and tower in recurrent.NAMES:
                self.add_module(tower, recurrent.module(tower, own))
            elif own:
                self.add_module(tower, _perceptron(own, activation, tower == "trunk"))
        self._recurrent = {name: recurrent.size(getattr(self, name)) for name in recurrent.NAMES if hasattr(self, name)}
        self.state_size = sum(self._recurrent.values())
        normalizer = {f"normalizer.{name}": value for name, value in self.normalizer.state_dict().items()} if self.normalizer else {}
        try:
            self.load_state_dict({**weights, **normalizer})
        except RuntimeError as other:
            raise ValueError(f"{checkpoint.path}: its weights are not those of its config: {other}") from None

    def _find_picture(self, layers, named):
        """The part that the encoder reads as a picture."""
        looks = named or {"conv", *POOLS} & set(flat_words(layers))
        axes = (3, 4) if self._frames > 1 else (2, 3)
        found = [(_key(leaf), leaf.shape) for leaf in self._observed if _key(leaf) == named or
                 (not named and len(leaf.shape) in axes and leaf.kind in ("uint8", "bool", "multi_binary"))]
        return found[0] if looks and found else None

    # ---- what is seen

    def _batch(self, observation):
        """Leaves as [rows][shape] each, and whether it was one without a batch."""
        device = next(self.parameters()).device
        values = [_tensor(spaces.pick(observation, leaf.path), device) for leaf in self._observed]
        one = values[0].dim() == len(self._observed[0].shape)
        values = [value.unsqueeze(0) for value in values] if one else values
        for leaf, value in zip(self._observed, values):
            if tuple(value.shape) != (len(values[0]), *leaf.shape):
                raise ValueError(f"{leaf.name}: {tuple(value.shape)} where {leaf.shape} is one, and (rows, *{leaf.shape}) a batch")
        return values, one

    def _numbers(self, values):
        """Of each part, by its key: [rows][numbers] as networks read them."""
        rows = [_flat(leaf, value) for leaf, value in zip(self._observed, values)]
        scaled = [i for i, leaf in enumerate(self._observed) if leaf.floats]
        if self.normalizer and scaled:
            sizes = [rows[i].shape[1] for i in scaled]
            for i, part in zip(scaled, self.normalizer(torch.cat([rows[i] for i in scaled], 1)).split(sizes, 1)):
                rows[i] = part
        return dict(zip((_key(leaf) for leaf in self._observed), rows))

    def _encoded(self, parts, tower):
        own = f"{tower}_encoder" if hasattr(self, f"{tower}_encoder") else "encoder"
        if hasattr(self, own):
            seen = {key: part / self._divisor if self._picture and key == self._picture[0] and self._is_bytes(key) else part
                    for key, part in parts.items()}
            return getattr(self, own)(seen)
        return torch.cat(list(parts.values()), 1)

    def _features(self, moment, tower):
        """What the head of that name reads."""
        given = moment.given
        x = given.get(tower, given.get("")) if given else self._encoded(moment.parts, tower)  # "": all read the same
        return self.trunk(x) if hasattr(self, "trunk") else x

    def _is_bytes(self, key):
        return any(_key(leaf) == key and leaf.kind in ("uint8", "bool", "multi_binary") for leaf in self._observed)

    def _head(self, moment):
        if hasattr(self, "actor"):
            return self.actor(self._features(moment, "actor"))
        numbers = self._values(self._features(moment, "q"))
        if self._quantiles:
            return numbers.mean(2)
        return numbers.squeeze(2) if self._atoms is None else numbers.softmax(2) @ self._atoms.to(numbers.device)

    def _values(self, x):
        """What each choice has: [rows][choices][numbers]; one, its quantiles, or its atoms' logits."""
        choices = self._parts[0].n[0]
        for name in ("q", "quantiles", "atoms"):
            if hasattr(self, name):
                return getattr(self, name)(x).view(len(x), choices, -1)
        advantage = self.advantage(x).view(len(x), choices, -1)
        return self.value(x).view(len(x), 1, -1) + (advantage - advantage.mean(1, keepdim=True))

    # ---- what is carried

    def _state(self, state, rows, one):
        """As [rows][size], whatever was given."""
        if state is None:
            return self.initial_state(rows)
        if not self.state_size:
            raise ValueError("the policy is not recurrent: it takes no state")
        state = torch.as_tensor(state, dtype=torch.float32, device=next(self.parameters()).device)
        state = state.unsqueeze(0) if one and state.dim() == 1 else state
        if tuple(state.shape) != (rows, self.state_size):
            raise ValueError(f"state: {tuple(state.shape)} where {(self.state_size,)} is one, and {(rows, self.state_size)} a batch")
        return state

    def _moment(self, observation, state):
        values, one = self._batch(observation)
        moment = _Moment(self._numbers(values), one)
        state = self._state(state, len(values[0]), one)
        if not self.state_size:
            return moment
        after = []
        for name, before in zip(self._recurrent, state.split(list(self._recurrent.values()), 1)):
            reader = recurrent.reader(name)
            moment.given[reader], carried = recurrent.step(getattr(self, name), self._encoded(moment.parts, reader), before)
            after.append(carried)
        moment.state = torch.cat(after, 1)
        return moment

    def initial_state(self, rows=None):
        """What is carried into the first step of an episode: zeros, of so many environments, or of one without a batch. None: the policy
        is not recurrent."""
        shape = (self.state_size,) if rows is None else (rows, self.state_size)
        return torch.zeros(shape, device=next(self.parameters()).device) if self.state_size else None

    # ---- what is asked

    def forward(self, observation, state=None):
        """All that the policy's head gives: part by part of the action space the logits of every choice (with DQN their values), or
        the means; then with algorithm.state_std, as with SAC (but not TD3), the log deviations of all numbers. state: of a recurrent policy, what the step before gave; None: an episode begins."""
        moment = self._moment(observation, state)
        head = self._head(moment)
        return moment.answer(head[0] if moment.one else head)

    @torch.no_grad()
    def act(self, observation, greedy=True, mask=None, state=None):
        """The most probable action, or one that is drawn; as the environment takes it, but for the bounds of boxes, which no
        checkpoint knows: with algorithm.squash, and with SAC and TD3, numbers are within -1 .. 1, which stand for the bounds. mask: which choices are allowed, of all discrete elements in order. state: as above."""
        if not greedy and not hasattr(self, "actor"):
            raise ValueError("a policy of values has nothing to draw from: greedy=True")
        if not greedy and self._means:
            raise ValueError("a policy of means alone has nothing to draw from: greedy=True")
        moment = self._moment(observation, state)
        head = self._head(moment)
        mask = None if mask is None else torch.as_tensor(mask, device=head.device).bool().reshape(len(head), -1)
        actions = self._actions(head, greedy, mask)
        return moment.answer(spaces.build(self.action_space, (action[0] if moment.one else action for action in actions)))

    @torch.no_grad()
    def state_value(self, observation, state=None):
        """What the critic makes of it; alone, as `act` of the same observation and state gives the next state."""
        if not hasattr(self, "critic"):
            raise ValueError("the file has no critic")
        moment = self._moment(observation, state)
        found = self.critic(self._features(moment, "critic"))[:, 0]
        return found[0] if moment.one else found

    def _log_std(self, head):
        """Of all numbers of the action: weights, or each row's own, which stand at the end of its head."""
        count = sum(leaf.elements for leaf in self._parts if not leaf.n and leaf.kind != "multi_binary")
        if self._state_std and count:
            return head[:, -count:].clamp(-20, 2)  # common/rl/gauss.h
        return getattr(getattr(self, "actor", None), "log_std", None)

    def _actions(self, head, greedy, mask):
        at = bit = number = 0
        log_std = self._log_std(head)
        for leaf in self._parts:
            n, start = ([2] * leaf.elements, [0] * leaf.elements) if leaf.kind == "multi_binary" else (leaf.n, leaf.start)
            size = sum(n) or leaf.elements
            part = head[:, at:at + size]
            if n:
                allowed = None if mask is None else mask[:, bit:bit + size]
                part = _choose(part, n, start, greedy, allowed)
                bit += size
            elif not greedy:
                part = part + torch.exp(log_std[..., number:number + size]) * torch.randn_like(part)
            if not n and self._squash:
                part = torch.tanh(part)
            number += 0 if n else size
            at += size
            yield part.reshape(-1, *leaf.shape)


def _choose(logits, n, start, greedy, allowed):
    """A choice of each element."""
    logits = logits if allowed is None else logits.masked_fill(~allowed, -math.inf)
    found = []
    for part, first in zip(logits.split(n, 1), start):
        best = part.argmax(1) if greedy else torch.distributions.Categorical(logits=part).sample()
        found.append(best + first)
    return torch.stack(found, 1)


def _key(leaf):
    """As configs call it: "image" of "obs.image", "obs" of an observation without parts."""
    return leaf.name[len("obs."):] or leaf.name if leaf.path else leaf.name


def _flat(leaf, value):
    """[rows][numbers], choices one-hot."""
    value = value.reshape(len(value), -1)
    if not leaf.n:
        return value.float()
    columns = [torch.nn.functional.one_hot(value[:, i].long() - first, n) for i, (n, first) in enumerate(zip(leaf.n, leaf.start))]
    return torch.cat(columns, 1).float()


def _perceptron(own, activation, trunk):
    """The layers of a tower, and its log_std, or SAC's log_alpha. A trunk's end with an activation."""
    numbers, found = sorted(int(name.split(".")[0]) for name in own if re.fullmatch(r"\d+\.weight", name)), []
    for number in numbers:
        found += [torch.nn.Linear(own[f"{number}.weight"].shape[1], own[f"{number}.weight"].shape[0]), activation()]
    tower = torch.nn.Sequential(*(found if trunk else found[:-1]))
    for name in ("log_std", "log_alpha"):
        if name in own:
            setattr(tower, name, torch.nn.Parameter(torch.empty_like(own[name])))
    return tower
