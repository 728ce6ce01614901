"""Atari's games by frames, as the config's env.frames asks: what Gymnasium's AtariPreprocessing does, but for making the screens
smaller, which is done where they are read (collector/area.h).

The emulator is played directly: of four frames only the last two are looked at, and grey ones only."""

from tutti_env.faults import Fault

# Arguments of an env that frames leave no meaning to, and what to do instead.
IN_VAIN = {
    "obs_type": "screens are grey",
    "sound_obs": "only screens are seen",
    "continuous": "actions are those of a joystick's positions",
    "max_episode_steps": "take max_num_frames_per_episode, which counts frames",
}


def arguments(keywords):
    """What the env is made with: it skips no frames of its own."""
    for name, why in IN_VAIN.items():
        if name in keywords:
            raise Fault("INVALID", f"env.args.{name} says nothing with env.frames: {why}")
    if keywords.get("frameskip", 1) != 1:
        raise Fault("INVALID", f"env.args.frameskip is {keywords['frameskip']}, but env.frames.frame_skip skips: leave it away, or make it 1")
    return {**keywords, "frameskip": 1}


def check_id(env_id):
    if not env_id.startswith("ALE/"):
        raise Fault("INVALID", f"env.frames is for the games of the Arcade Learning Environment (gym:ALE/...), not for {env_id}")


def wrap(gymnasium, env, asked):
    """The env, whose steps are `frame_skip` frames and whose observations are whole grey screens."""
    import numpy as np  # which the interpreter may not have
    skip, noops, by_life, clip = (asked[name] for name in ("frame_skip", "noop_max", "terminal_on_life_loss", "clip_reward"))
    game = env.unwrapped
    ale, actions = game.ale, game._action_set  # pylint: disable=protected-access
    act, lives_of, over, cut, look = ale.act, ale.lives, ale.game_over, ale.game_truncated, ale.getScreenGrayscale
    before = np.empty(ale.getScreenDims(), np.uint8)  # the frame before the last, within a step

    class Screens(gymnasium.Wrapper):
        """What it has goes into its state: the screen that is shown, since a step that ends early shows it again."""

        def __init__(self):
            super().__init__(env)
            self.screen, self.lives = np.zeros_like(before), 0
            self.observation_space = gymnasium.spaces.Box(0, 255, before.shape, np.uint8)

        def reset(self, *, seed=None, options=None):
            info = self.env.reset(seed=seed, options=options)[1]
            for _ in range(game.np_random.integers(1, noops + 1) if noops else 0):
                act(actions[0], 1.0)
                if over(with_truncation=False) or cut():
                    info = self.env.reset(seed=seed, options=options)[1]
            self.lives = lives_of()
            look(self.screen)
            return self.screen, info

        def step(self, action):
            action, total, looked = actions[action], 0.0, False
            for left in range(skip - 1, -1, -1):
                total += act(action, 1.0)
                terminated, truncated = over(with_truncation=False), cut()
                if by_life:
                    lives, self.lives = self.lives, lives_of()
                    terminated = terminated or self.lives < lives
                if terminated or truncated:
                    break
                if left == 1:
                    look(before)
                    looked = True
                elif left == 0:
                    look(self.screen)
            if looked:
                np.maximum(self.screen, before, out=self.screen)
            return self.screen, float(np.sign(total)) if clip else total, terminated, truncated, {}

    return Screens()


def check_shown(gymnasium, env):
    """Other wrappers come outside, and see whole screens."""
    if env.observation_space != gymnasium.spaces.Box(0, 255, env.unwrapped.ale.getScreenDims(), "uint8"):
        raise Fault("INVALID", "env.wrappers: after them an observation is no grey screen any more, which env.frames is to make smaller")
