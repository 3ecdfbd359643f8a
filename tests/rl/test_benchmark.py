from __future__ import annotations

from toolverse_jax.rl.benchmark import benchmark_tara, synthetic_trajectories


def test_the_benchmark_checks_its_own_results():
    figures = benchmark_tara(groups=2, group_size=3, turns=3, tokens=40, row_length=128)
    assert figures["trajectories"] == 6
    assert figures["speedup_scatter"] > 0


def test_a_quarter_of_synthetic_tokens_carries_loss():
    rollouts = synthetic_trajectories(20, turns=4, tokens=700, seed=0)
    share = sum(r.loss_mask.sum() for r in rollouts) / sum(len(r.tokens) for r in rollouts)
    assert 0.2 < share < 0.4
