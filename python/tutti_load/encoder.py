"""The layers of network.encoder as modules, numbered as the file numbers them."""

import re

import torch

STAGE = "conv {0} 3x3 pad 1, max_pool 3x3 /2 pad 1, residual 2 (relu, conv {0} 3x3 pad 1, relu, conv {0} 3x3 pad 1), "
KNOWN = {"nature": "conv 32 8x8 /4 relu, conv 64 4x4 /2 relu, conv 64 3x3 relu, dense 512 relu",
         "impala": "".join(STAGE.format(channels) for channels in (16, 32, 32)) + "relu, dense 256 relu",
         "minatar": "conv 16 3x3 relu, dense 128 relu"}
POOLS = {"max_pool": torch.nn.MaxPool2d, "avg_pool": torch.nn.AvgPool2d}
ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}


def words_of(text):
    """Lists of words, one a layer; a list among them for what stands in brackets."""
    return list(_layers(re.findall(r"[^\s,()]+|[,()]", text)))


def _layers(words):
    while words and words[0] != ")":
        layer = []
        while words and words[0] not in (",", "(", ")"):
            layer.append(words.pop(0))
        if words[:1] == ["("]:
            del words[0]
            layer.append(list(_layers(words)))
            del words[:1]
        del words[:words[:1] == [","]]
        yield from words_of(KNOWN[layer[0]]) if layer and layer[0] in KNOWN else [layer]


def flat_words(layers):
    """The words of all layers, those in brackets among them."""
    return [word for layer in layers for item in layer for word in (flat_words(item) if isinstance(item, list) else [item])]


class Residual(torch.nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Concat(torch.nn.Module):
    """Appends a part of the observation, by its key."""

    def __init__(self, key):
        super().__init__()
        self.key, self.parts = key, None

    def forward(self, x):
        return torch.cat([x, self.parts[self.key]], 1)


class Embed(torch.nn.Embedding):
    """Appends a vector for each choice of a part, which is one-hot: the tables of its elements stand one below the other. n: choices of
    each element, those of all frames of a stack."""

    def __init__(self, key, n, shape):
        super().__init__(*shape)
        self.key, self.parts, self.n = key, None, n
        self.first = [sum(n[:i]) % shape[0] for i in range(len(n))]

    def forward(self, x):
        rows = [hot.argmax(1) + first for hot, first in zip(self.parts[self.key].split(self.n, 1), self.first)]
        return torch.cat([x, super().forward(torch.stack(rows, 1)).flatten(1)], 1)


class Encoder(torch.nn.Sequential):
    """picture: key of the part that it reads as one, and its shape as the environment has it; None: it reads all as one vector, or,
    where it begins with what it embeds, nothing. parts: keys of all, and the choices of their elements. shapes: of the file's arrays, by
    their names without the encoder's. frames: so many are stacked."""

    def __init__(self, layers, picture, parts, shapes, frames=1):
        blank = not picture and [word for word, *_ in layers if word != "concat"][:1] == ["embed"]
        read = [picture[0]] if picture else []
        if (picture or blank) and "concat" not in flat_words(layers):
            read += [layer[1] for layer in layers if layer[0] == "embed"]
            layers = layers + [["concat", key] for key in parts if key not in read]
        super().__init__(*_modules(layers, not picture, shapes, parts, ""))
        self.picture, self.frames, self.blank = picture, frames, blank

    def forward(self, parts):
        """parts: of the observation by their keys, each [rows][numbers]."""
        for module in self.modules():
            if isinstance(module, (Concat, Embed)):
                module.parts = parts
        x = self._look(parts) if self.picture else torch.cat(list(parts.values()), 1)
        return super().forward(x[:, :0] if self.blank else x).flatten(1)

    def _look(self, parts):
        key, shape = self.picture
        shape = shape if self.frames == 1 else shape[1:]
        shape = shape if len(shape) == 3 else (*shape, 1)
        x = parts[key].reshape(-1, self.frames, *shape)
        first = shape[0] < shape[2] and shape[0] <= shape[1]  # the channels
        x = x if first else x.permute(0, 1, 4, 2, 3)
        return x.flatten(1, 2)  # those of all frames, the oldest first


def _pair(word):
    return [int(number) for number in word.lstrip("/").split("x")] * (1 if "x" in word else 2)


def _options(rest):
    found = {}
    for i, option in enumerate(rest):
        if option == "pad":
            found["padding"] = _pair(rest[i + 1])
        elif isinstance(option, str) and option[0] == "/":
            found["stride"] = _pair(option)
    return found


def _modules(layers, flat, shapes, parts, prefix):
    """flat: there is no picture, or no more."""
    found = []
    for word, *rest in layers:
        if word in ("dense", "concat", "embed") and not flat:
            found.append(torch.nn.Flatten())
            flat = True
        shape = shapes.get(f"{prefix}{len(found)}.weight")
        if word == "residual":
            for _ in range(int(rest[0]) if isinstance(rest[0], str) else 1):
                found.append(Residual(*_modules(rest[-1], flat, shapes, parts, f"{prefix}{len(found)}.")))
            continue
        found.append(_module(word, rest, shape, parts))
        found += [ACTIVATIONS[rest[-1]]()] if rest and rest[-1] in ACTIVATIONS else []
    return found


def _module(word, rest, shape, parts):
    if word in ("conv", "dense", "layer_norm", "embed") and shape is None:
        raise ValueError(f"network.encoder: a layer '{word}' has no weights in the file")
    if word == "conv":
        return torch.nn.Conv2d(shape[1], shape[0], _pair(rest[1]), **_options(rest))
    if word in POOLS:
        return POOLS[word](_pair(rest[0]), **{"stride": 1, **_options(rest)})
    if word == "dense":
        return torch.nn.Linear(shape[1], shape[0])
    if word == "layer_norm":
        return torch.nn.LayerNorm(shape)
    if word == "concat":
        return Concat(rest[0])
    if word == "embed":
        return Embed(rest[0], parts[rest[0]], shape)
    if word in ACTIVATIONS:
        return ACTIVATIONS[word]()
    raise ValueError(f"network.encoder: a layer '{word}' is unknown: the file is of a later version?")
