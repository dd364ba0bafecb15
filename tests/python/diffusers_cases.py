"""Levels of diffusers schedulers, worked out here and not by the package, and a small network."""

from types import SimpleNamespace

import torch


def schedule_of(scheduler, steps):
    """What mergeplan.Schedule.from_diffusers gives for DDIM and flow matching: T+1 levels, index 0 clean."""
    scheduler.set_timesteps(steps)
    times = scheduler.timesteps.flip(0)
    nan = [float("nan")]
    if not hasattr(scheduler, "alphas_cumprod"):
        s = scheduler.sigmas.double().flip(0)
        size = torch.hypot(1 - s, s)
        return SimpleNamespace(
            alpha=((1 - s) / size).tolist(), sigma=(s / size).tolist(), level_scale=size.tolist(), data_scale=1.0,
            timesteps=nan + times.double().tolist(), prediction_type="flow_prediction",
        )
    bars = scheduler.alphas_cumprod.double()
    below = int(times[0]) - scheduler.config.num_train_timesteps // steps
    final = bars[below] if below >= 0 else scheduler.final_alpha_cumprod.double()
    every = torch.cat([final.reshape(1), bars[times]])
    return SimpleNamespace(
        alpha=every.sqrt().tolist(), sigma=(1 - every).sqrt().tolist(), level_scale=[1.0] * (steps + 1), data_scale=1.0,
        timesteps=nan + times.double().tolist(), prediction_type=scheduler.config.prediction_type,
    )


def blocks_plan(schedule, borders):
    """Vanilla blocks that end at these steps."""
    steps, merges, blocks, first = len(schedule.alpha) - 1, [], [], 1
    for last in [*borders, steps]:
        blocks.append([first, last])
        if first < last:
            children = [[t, t] for t in range(first, last + 1)]
            merges.append(SimpleNamespace(first=first, last=last, round=1, children=children))
        first = last + 1
    return SimpleNamespace(teacher_steps=steps, merges=merges, blocks=blocks, init="jump", schedule=schedule)


def network(dtype=torch.float32):
    """Some smooth function of state and time."""
    mix = torch.randn(6, 6, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(dtype) * 0.4
    return lambda z, t: torch.tanh(z @ mix + float(t) / 1000)


def sample(scheduler, net, noise, scale=True):
    """What a pipeline does."""
    z = noise * getattr(scheduler, "init_noise_sigma", 1.0)
    for t in scheduler.timesteps:
        seen = scheduler.scale_model_input(z, t) if hasattr(scheduler, "scale_model_input") else z
        z = scheduler.step(net(seen, t), t, z).prev_sample
    return z
