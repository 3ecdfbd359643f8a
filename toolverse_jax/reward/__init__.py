"""Turn rewards: do the calls of a user turn cover its golden calls?"""

from __future__ import annotations

from toolverse_jax.reward.coverage import count_extra_calls, covers, turn_reward
from toolverse_jax.reward.matching import MATCH_MODES, arguments_match, call_matches

__all__ = [
    "MATCH_MODES",
    "arguments_match",
    "call_matches",
    "count_extra_calls",
    "covers",
    "turn_reward",
]
