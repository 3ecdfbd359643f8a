from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toolverse_jax.config import MeshConfig, OptimizerConfig
from toolverse_jax.policy import hidden_states, make_mesh, token_logprobs
from toolverse_jax.rl import microbatches, pack, policy_loss
from toolverse_jax.train import TrainStep, init_state, make_optimizer, policy_objective

OPTIMIZER = OptimizerConfig(learning_rate=0.01)
CLIPS = {"clip_low": 0.2, "clip_high": 0.28, "importance_sampling_cap": 2.0}


def make_step(policy, mesh, **options) -> TrainStep:
    objective = policy_objective(**CLIPS, on_policy=options.pop("on_policy", False))
    return TrainStep(policy, policy.params, make_optimizer(OPTIMIZER, 10), objective, mesh, **options)


@pytest.fixture(scope="module")
def step(policy, one_device) -> TrainStep:
    return make_step(policy, one_device)


@pytest.fixture(scope="module")
def samples(rollout):
    draw = np.random.default_rng(0)
    rollouts = [rollout(seed, length=25 if seed % 2 else 38) for seed in range(9)]
    return rollouts, [draw.normal(size=3).astype(np.float32) for _ in rollouts]


def with_old_logprobs(step, params, batch, rows):
    parts = [np.asarray(step.logprobs(params, part)) for part in microbatches(batch, rows)]
    return dataclasses.replace(batch, old_logprobs=np.concatenate(parts) - 0.05 * batch.loss_mask)


def old_batch(step, params, samples):
    return with_old_logprobs(step, params, pack(*samples, row_length=64, rows_multiple=2), 2)


def sums_of(step, params, batch, rows):
    gradients, totals = step.zeros(params), {}
    for part in microbatches(batch, rows):
        gradients, metrics = step.accumulate(params, gradients, part)
        for name, value in metrics.items():
            totals[name] = totals.get(name, 0.0) + float(value)
    return gradients, totals


def largest_difference(left, right) -> float:
    """Largest difference of any element, relative to the largest element of `right`."""
    scale = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(right))
    return max(
        float(jnp.max(jnp.abs(a - b))) for a, b in zip(*map(jax.tree.leaves, (left, right)), strict=True)
    ) / (scale or 1.0)


def one_per_row(policy, params, rollouts, advantages):
    """The loss without packing, moving, or chunks: each trajectory alone in a row, all logits."""
    total, longest = 0.0, max(len(r.tokens) for r in rollouts)

    def padded(values):
        return jnp.stack([np.pad(v, (0, longest - len(v))) for v in values])

    tokens, mask = padded([r.tokens for r in rollouts]), padded([r.loss_mask for r in rollouts])
    by_token = [
        np.append(0, a).astype(np.float32)[r.turn_ids] for r, a in zip(rollouts, advantages, strict=True)
    ]
    positions = jnp.broadcast_to(jnp.arange(longest), tokens.shape)
    segments = padded([np.ones_like(r.tokens) for r in rollouts])
    hidden = hidden_states(policy, params, tokens, segments, positions, attention="dense")
    logprobs, _ = token_logprobs(policy, params, hidden[:, :-1], tokens[:, 1:])
    for row, rollout in enumerate(rollouts):
        kept = slice(1, len(rollout.tokens))
        mine = logprobs[row, : len(rollout.tokens) - 1]
        total += policy_loss(
            mine,
            jax.lax.stop_gradient(mine) - 0.05,
            rollout.sampler_logprobs[kept],
            by_token[row][kept],
            mask[row, kept],
            **CLIPS,
        )[0]
    return total


def test_packed_rows_give_the_loss_and_gradients_of_separate_trajectories(policy, step, samples):
    batch = old_batch(step, policy.params, samples)
    gradients, totals = sums_of(step, policy.params, batch, 2)
    loss, expected = jax.jit(jax.value_and_grad(lambda p: one_per_row(policy, p, *samples)))(policy.params)
    np.testing.assert_allclose(totals["loss"], loss, rtol=1e-5)
    assert largest_difference(gradients, expected) < 2e-5
    assert totals["tokens"] == sum(r.loss_mask[1:].sum() for r in samples[0])


def test_the_result_does_not_depend_on_rows_and_microbatches(policy, step, samples):
    def run(row_length, rows):
        packed = pack(*samples, row_length=row_length, rows_multiple=rows)
        return sums_of(step, policy.params, with_old_logprobs(step, policy.params, packed, rows), rows)

    (gradients, totals), (expected, wanted) = run(130, 1), run(64, 2)
    assert totals.keys() == wanted.keys()
    np.testing.assert_allclose([totals[k] for k in wanted], list(wanted.values()), rtol=2e-5, atol=1e-4)
    assert largest_difference(gradients, expected) < 2e-5


def test_the_result_does_not_depend_on_the_mesh(policy, step, samples):
    sharded = make_step(policy, make_mesh(MeshConfig(data=2, fsdp=2, tensor=2)))
    batch = old_batch(step, policy.params, samples)
    expected, wanted = sums_of(step, policy.params, batch, 2)
    # Four row shards: a quarter of the rows, most of them, are empty.
    wide = with_old_logprobs(step, policy.params, pack(*samples, row_length=64, rows_multiple=8), 2)
    state = init_state(policy.params, make_optimizer(OPTIMIZER, 10), sharded.mesh)
    gradients, totals = sums_of(sharded, state.params, wide, 8)
    np.testing.assert_allclose([totals[k] for k in wanted], list(wanted.values()), rtol=2e-5, atol=1e-4)
    assert largest_difference(*map(jax.device_get, (gradients, expected))) < 2e-5
    embed = state.params["embed"]
    assert state.opt_state[1][0].mu["embed"].sharding == embed.sharding
    state, _ = sharded.apply(state, gradients, 10.0)
    assert state.params["embed"].sharding == embed.sharding


def test_logprobs_lie_at_the_predicted_tokens(policy, step, samples):
    batch = pack(*samples, row_length=64, rows_multiple=2)
    found = np.concatenate([np.asarray(step.logprobs(policy.params, p)) for p in microbatches(batch, 2)])
    assert not np.any(found[~batch.loss_mask])
    hidden = hidden_states(
        policy, policy.params, batch.tokens, batch.segment_ids, batch.positions, attention="dense"
    )
    expected, _ = token_logprobs(policy, policy.params, hidden[:, :-1], batch.tokens[:, 1:])
    mask = batch.loss_mask[:, 1:]
    np.testing.assert_allclose(found[:, 1:][mask], np.asarray(expected)[mask], atol=2e-5)


def test_with_old_logprobs_from_the_same_parameters_every_ratio_is_one(policy, step, samples):
    batch = pack(*samples, row_length=64, rows_multiple=2)
    parts = [np.asarray(step.logprobs(policy.params, part)) for part in microbatches(batch, 2)]
    _, totals = sums_of(
        step, policy.params, dataclasses.replace(batch, old_logprobs=np.concatenate(parts)), 2
    )
    np.testing.assert_allclose(totals["ratio"] / totals["tokens"], 1.0, rtol=1e-6)
    np.testing.assert_allclose(totals["old_kl"], 0.0, atol=1e-9)


def test_on_policy_gradients_are_those_with_recomputed_old_logprobs(policy, step, samples, one_device):
    batch = pack(*samples, row_length=64, rows_multiple=2)
    parts = [np.asarray(step.logprobs(policy.params, part)) for part in microbatches(batch, 2)]
    old = dataclasses.replace(batch, old_logprobs=np.concatenate(parts))
    expected, _ = sums_of(step, policy.params, old, 2)
    gradients, _ = sums_of(make_step(policy, one_device, on_policy=True), policy.params, batch, 2)
    assert largest_difference(gradients, expected) < 1e-5


def test_tokens_of_tools_and_users_get_no_gradient(policy, step, samples):
    # The loss may use them as context, but not as targets: with all advantages of loss tokens 0 and
    # garbage elsewhere, nothing is left.
    batch = pack(*samples, row_length=64, rows_multiple=2)
    batch = dataclasses.replace(
        batch,
        advantages=np.where(batch.loss_mask, 0.0, 7.0).astype(np.float32),
        old_logprobs=np.where(batch.loss_mask, 0.0, np.nan).astype(np.float32),
        sampler_logprobs=np.where(batch.loss_mask, 0.0, np.nan).astype(np.float32),
    )
    gradients, _ = sums_of(step, policy.params, batch, 2)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(gradients))


def test_rows_without_loss_tokens_give_zero(policy, step, rollout):
    empty = pack([], [], row_length=64, rows_multiple=2)
    silent = rollout(
        1, loss_mask=np.zeros(30, bool), length=30, sampler_logprobs=np.full(30, np.nan, np.float32)
    )
    masked = pack([silent], [np.ones(3)], row_length=64, rows_multiple=2)
    for batch in (empty, masked):
        gradients, totals = sums_of(step, policy.params, batch, 2)
        assert all(np.array_equal(leaf, np.zeros_like(leaf)) for leaf in jax.tree.leaves(gradients))
        assert not any(totals.values())
        assert not np.any(step.logprobs(policy.params, batch))


def test_gradients_agree_with_finite_differences(policy, step, samples):
    batch = old_batch(step, policy.params, samples)
    gradients, _ = sums_of(step, policy.params, batch, 2)
    direction = jax.tree.map(
        lambda p: np.random.default_rng(p.size).normal(size=p.shape).astype(np.float32), policy.params
    )
    slope = sum(
        float(jnp.vdot(g, d)) for g, d in zip(*map(jax.tree.leaves, (gradients, direction)), strict=True)
    )

    def loss_at(distance):
        moved = jax.tree.map(lambda p, d: p + distance * d, policy.params, direction)
        return sums_of(step, moved, batch, 2)[1]["loss"]

    size = 2e-4
    assert abs((loss_at(size) - loss_at(-size)) / (2 * size) - slope) < 0.02 * abs(slope) + 0.05


def test_after_warm_up_nothing_is_compiled_again(policy, step, one_device, samples):
    state = init_state(policy.params, make_optimizer(OPTIMIZER, 10), one_device)
    rollouts, advantages = samples
    counts = []
    for size in (9, 3, 1, 7):
        batch = old_batch(step, state.params, (rollouts[:size], advantages[:size]))
        gradients, _ = sums_of(step, state.params, batch, 2)
        state, _ = step.apply(state, gradients, float(batch.loss_mask.sum()))
        counts.append(dict(step.traces))
    assert counts[0].keys() == {"accumulate", "apply", "logprobs"}
    assert counts[1:] == counts[:1] * 3


def test_an_update_divides_by_the_denominator_and_clips_the_mean(policy, step, one_device):
    # All gradients are 6 / 3 = 2. Clipping makes them equal and small, and the first step of Adam
    # moves every parameter by the learning rate whatever their size.
    state = init_state(policy.params, make_optimizer(OPTIMIZER, 10), one_device)
    gradients = jax.tree.map(lambda p: np.full(p.shape, 6.0, np.float32), policy.params)
    state, norms = step.apply(state, gradients, 3.0)
    count = sum(leaf.size for leaf in jax.tree.leaves(policy.params))
    np.testing.assert_allclose(norms["grad_norm"], 2.0 * count**0.5, rtol=1e-5)
    np.testing.assert_allclose(norms["update_norm"], 0.01 * count**0.5, rtol=1e-4)
    np.testing.assert_allclose(state.params["embed"], policy.params["embed"] - 0.01, atol=1e-5)
    assert int(state.update) == 1


def test_an_update_without_tokens_is_refused(policy, step, one_device):
    state = init_state(policy.params, make_optimizer(OPTIMIZER, 10), one_device)
    with pytest.raises(ValueError, match="denominator"):
        step.apply(state, step.zeros(state.params), 0.0)


def test_starting_a_state_leaves_the_given_parameters_alone(policy, step, one_device):
    before = jax.tree.map(np.array, policy.params)
    state = init_state(policy.params, make_optimizer(OPTIMIZER, 10), one_device)
    step.apply(state, jax.tree.map(jnp.ones_like, policy.params), 1.0)
    assert largest_difference(policy.params, before) == 0


def test_the_temperature_flattens_the_distribution(policy, one_device, samples):
    hot = make_step(policy, one_device, temperature=1e6)
    (batch, *_) = microbatches(pack(*samples, row_length=64, rows_multiple=2), 2)
    found = np.asarray(hot.logprobs(policy.params, batch))[batch.loss_mask]
    np.testing.assert_allclose(found, -np.log(policy.config.vocab_size), atol=1e-3)
