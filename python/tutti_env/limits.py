"""The limit of an episode's steps, counted for many envs at once.

gymnasium.make puts two wrappers around an env: one counts the steps and cuts the episode, one sees to it that there was a reset. Of a step of
CartPole they are a fourteenth. Where they are the outermost ones, and nothing else, they are stepped past as long as nobody comes to its limit; what they
would have counted they are told later. Rounds in which somebody may come to it go through them.
"""

from gymnasium.wrappers import OrderEnforcing, TimeLimit

# What their steps have to do with, by name: another version of theirs may do more, and is not stepped past.
_KNOWN = {
    TimeLimit: {"env", "step", "_elapsed_steps", "_max_episode_steps"},
    OrderEnforcing: {"_has_reset", "ResetNeeded", "super", "step"},
}


def _is(env, kind):
    return type(env) is kind and "step" not in vars(env) and set(kind.step.__code__.co_names) == _KNOWN[kind]


def _within(env):
    """None: there is more around it."""
    return env.env.env if _is(env, TimeLimit) and _is(env.env, OrderEnforcing) else None


class Limits:
    """Of envs that step together, those of slots `first` and so on."""

    def __init__(self, envs, first):
        self.envs, self.first = envs, first
        within = [_within(env) for env in envs]
        self.past = None if None in within else within
        self.rounds, self.since = 0, [0] * len(envs)  # rounds past the wrappers, and at which of them each was told
        self.sure = 0  # in so many rounds nobody comes to its limit

    def stepped(self):
        """For the next round of all: on whom to call step."""
        if not self.sure:
            self._look()
        if not self.sure:
            return self.envs
        self.sure -= 1
        self.rounds += 1
        return self.past

    def _look(self):
        if self.past:
            self.settle()
            # pylint: disable-next=protected-access
            self.sure = max(0, min(env._max_episode_steps - (env._elapsed_steps or 0) for env in self.envs) - 1)

    def begun(self, slot):
        """Its wrappers count from 0 again."""
        self.since[slot - self.first] = self.rounds

    def settle(self):
        """Tell all of them; who steps now, or gets another count, does so through them."""
        for k, env in enumerate(self.envs):
            if self.since[k] != self.rounds:
                env._elapsed_steps += self.rounds - self.since[k]  # pylint: disable=protected-access
                self.since[k] = self.rounds
        self.sure = 0
