"""An environment as the config asks for it: id, arguments, wrappers."""

import ast
import difflib
import functools
import json
import os
import re
import sys

from tutti_env import frames, reseed, screens
from tutti_env.faults import Fault, one_line, raised

# Which extra of gymnasium brings what an env of its own needs.
EXTRAS = {
    "gymnasium.envs.box2d": "box2d",
    "gymnasium.envs.mujoco": "mujoco",
    "gymnasium.envs.toy_text": "toy-text",
    "gymnasium.envs.classic_control": "classic-control",
    "ale_py": "atari",
}


def _pip(packages):
    return f'{sys.executable} -m pip install "{packages}"'


def _gymnasium(env_id):
    extra = "[atari]" if env_id.startswith("ALE/") else ""
    advice = f"run: {_pip('gymnasium' + extra)}; or name another interpreter by env.python or TT_PYTHON"
    try:
        import gymnasium
    except ImportError as error:
        raise Fault("NOT_FOUND", f"{sys.executable} has no gymnasium ({one_line(error)}); {advice}") from error
    if int(gymnasium.__version__.split(".")[0]) < 1:
        raise Fault("NOT_FOUND", f"{sys.executable} has gymnasium {gymnasium.__version__}, which is older than 1.0; "
                                   f"run: {_pip('gymnasium' + extra + '>=1.0')}")
    return gymnasium


def _register_atari(gymnasium, env_id):
    if not env_id.startswith("ALE/"):
        return
    try:
        import ale_py
    except ImportError as error:
        raise Fault("NOT_FOUND", f"{sys.executable} has no ale_py ({one_line(error)}); "
                                   f"run: {_pip('gymnasium[atari]')}") from error
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # a banner an env is no news
    gymnasium.register_envs(ale_py)


# ---- arguments --------------------------------------------------------------------------------------------------------


def value_of(text):
    """A scalar or list of the config as Python has it: numbers, booleans and lists of them, else text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    if re.fullmatch(r"[-+]?(\d[\d_]*|\d*\.\d+|\d+\.\d*)([eE][-+]?\d+)?", text):
        return int(text) if re.fullmatch(r"[-+]?\d[\d_]*", text) else float(text)
    if text.startswith("[") and text.endswith("]"):
        return [value_of(part.strip()) for part in text[1:-1].split(",")]
    return text


def arguments(pairs):
    """[["a.b", "1"]] -> {"a": {"b": 1}}"""
    out = {}
    for key, text in pairs:
        *sections, last = key.split(".")
        at = out
        for section in sections:
            at = at.setdefault(section, {})
        at[last] = value_of(text)
    return out


# ---- wrappers ---------------------------------------------------------------------------------------------------------


def _read_wrapper(text):
    """"Name" or "Name(key=value, ...)" -> (name, arguments)"""
    name, has_arguments, _ = text.partition("(")
    try:
        call = ast.parse("f" + text[len(name):], mode="eval").body if has_arguments else None
        if call is not None and (call.args or not isinstance(call.func, ast.Name)):
            raise ValueError("arguments are given by name")
        return name.strip(), {k.arg: ast.literal_eval(k.value) for k in call.keywords} if call else {}
    except (SyntaxError, ValueError, AttributeError) as error:
        raise Fault("INVALID", f"env.wrappers: '{text}' is not Name or Name(key=value, ...): {one_line(error)}") from error


def _find_wrapper(gymnasium, name):
    """One of gymnasium.wrappers, or module:Class."""
    module_name, colon, cls = name.rpartition(":")
    if colon:
        try:
            return getattr(__import__(module_name, fromlist=[cls]), cls)
        except (ImportError, AttributeError) as error:
            raise Fault("NOT_FOUND", f"env.wrappers: {name}: {one_line(error)}") from error
    import gymnasium.wrappers as known
    found = getattr(known, name, None) if not name.startswith("_") else None
    if isinstance(found, type) and issubclass(found, gymnasium.Env):
        return found
    near = difflib.get_close_matches(name, known.__all__, 1)
    hint = f"did you mean '{near[0]}'?" if near else "one of your own is module:Class"
    raise Fault("NOT_FOUND", f"env.wrappers: gymnasium.wrappers has no '{name}'; {hint}")


def _wrap(gymnasium, env, text):
    name, keywords = _read_wrapper(text)
    wrapper = _find_wrapper(gymnasium, name)
    try:
        return wrapper(env, **keywords)
    except gymnasium.error.DependencyNotInstalled as error:
        raise Fault("NOT_FOUND", f"env.wrappers: {text}: {one_line(error)}; run: {_pip('gymnasium[other]')}") from error
    except Exception as error:
        raise Fault("INVALID", f"env.wrappers: {text}: {type(error).__name__}: {one_line(error)}") from error


# ---- the env ----------------------------------------------------------------------------------------------------------


def _look_up(gymnasium, env_id, folders):
    module, _, name = env_id.rpartition(":")
    if module:
        sys.path[1:1] = [folder for folder in folders if folder not in sys.path]
        _import(module, folders)
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise Fault("NOT_FOUND", f"gymnasium has no such environment: {one_line(error)}") from error


def _import(module, folders):
    """Said apart: that it is not there, and that it is broken."""
    try:
        __import__(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(error.name + ".")):
            raise Fault("NOT_FOUND", f"no Python module '{module}' in {', '.join(folders)} or PYTHONPATH; env.path names the folder "
                                     f"that it lies in; for a package: {_pip(module)}") from error
        raise Fault("NOT_FOUND", f"importing {module} needs {error.name}; run: {_pip(error.name)}") from error
    except BaseException as error:  # pylint: disable=broad-except
        raise raised(f"importing {module}", error) from error


def _extra_of(spec):
    entry = spec.entry_point if isinstance(spec.entry_point, str) else ""
    for module, extra in EXTRAS.items():
        if entry.startswith(module):
            return f"gymnasium[{extra}]"
    return None


@functools.lru_cache(None)
def _mujoco_says(text):
    print(f"mujoco: {text}", file=sys.stderr, flush=True)


def _import_entry(gymnasium, spec):
    """What the env is made by, first: MuJoCo, if that brings it, writes what it warns of into a file in the current folder, unless
    it is told to call somebody."""
    if isinstance(spec.entry_point, str):
        gymnasium.envs.registration.load_env_creator(spec.entry_point)
    mujoco = sys.modules.get("mujoco")
    if hasattr(mujoco, "set_mju_user_warning"):
        mujoco.set_mju_user_warning(_mujoco_says)


def _make(gymnasium, env_id, spec, keywords):
    try:
        _import_entry(gymnasium, spec)
        return gymnasium.make(env_id, **{"disable_env_checker": True, **keywords})
    except gymnasium.error.DependencyNotInstalled as error:
        raise Fault("NOT_FOUND", f"a package is missing ({one_line(error)}); "
                                   f"run: {_pip(_extra_of(spec) or 'gymnasium[all]')}") from error
    except ModuleNotFoundError as error:
        raise Fault("NOT_FOUND", f"a package is missing ({one_line(error)}); "
                                   f"run: {_pip(_extra_of(spec) or error.name)}") from error
    except TypeError as error:
        if "argument" in str(error):
            raise Fault("INVALID", f"env.args: {one_line(error)}") from error
        raise raised("making it", error) from error
    except BaseException as error:  # pylint: disable=broad-except
        raise raised("making it", error) from error


class Maker:
    """Makes as many of one kind as are wanted."""

    def __init__(self, spec):
        self.id = spec["id"]
        self.gymnasium = _gymnasium(self.id)
        _register_atari(self.gymnasium, self.id)
        self.spec = _look_up(self.gymnasium, self.id, spec["path"] or [os.getcwd()])
        self.keywords = arguments(spec["args"])
        self.wrappers = spec["wrappers"]
        self.frames = spec["frames"]
        if self.frames:
            screens.check_id(self.id)
            self.keywords = screens.arguments(self.keywords)
        self.mask, self.looked = spec["mask"], "layout" in spec

    def make(self):
        shown = {"render_mode": frames.MODE} if frames.wanted() else {}
        env = _make(self.gymnasium, self.id, self.spec, {**self.keywords, **shown})
        reseed.watch(env)
        if self.frames:
            env = screens.wrap(self.gymnasium, env, self.frames)
        for text in self.wrappers:
            env = _wrap(self.gymnasium, env, text)
        if self.frames:
            screens.check_shown(self.gymnasium, env)
        return frames.wrap(self.gymnasium, env, _pip(_extra_of(self.spec) or "gymnasium[other]")) if shown else env

    def limit(self):
        """Steps of an episode, None = it may go on for ever: so Gymnasium takes -1, and None as what is registered."""
        given = self.keywords.get("max_episode_steps")
        limit = self.spec.max_episode_steps if given is None else given
        return limit if limit is not None and limit > 0 else None

    def _check_mask(self, env, spaces):
        """By the first process, before anybody plays."""
        parts = spaces.choices(env.action_space)
        if parts is None:
            raise Fault("INVALID", f"env.mask is for an action space of Discrete or MultiDiscrete; this one is "
                                   f"{type(env.action_space).__name__}")
        if self.looked:
            return
        try:
            spaces.mask_writer(env.action_space, [None], self.mask)(0, env.reset(seed=0)[1])
        except Fault as fault:
            raise Fault("INVALID", f"env.mask: {fault.text}") from fault
        except BaseException as error:  # pylint: disable=broad-except
            raise raised("reset", error) from error

    def describe(self, env):
        """All that Tutti wants to know before it plays."""
        from tutti_env import spaces  # needs numpy
        made = env.spec or self.spec
        if self.mask:
            self._check_mask(env, spaces)
        return {
            "obs": spaces.describe(env.observation_space, "the observation space"),
            "action": spaces.describe(env.action_space, "the action space"),
            "mask": bool(self.mask),
            "threshold": None if made.reward_threshold is None else float(made.reward_threshold),
            "limit": made.max_episode_steps,
            "version": self.gymnasium.__version__,
        }
