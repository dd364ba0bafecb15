"""Distilled students in diffusers pipelines, saved and loaded again."""

import json

import pytest
import torch

import diffusers_cases as cases
from diffusers import DDIMScheduler, DDPMPipeline, DDPMScheduler, DiffusionPipeline, UNet2DModel
from mergeplan.diffusers import MergeScheduler, SchedulerMixin
from mergeplan.torch import MergeDistiller


def small_unet():
    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, block_out_channels=(8, 8), layers_per_block=1, norm_num_groups=4,
        down_block_types=("DownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D"),
    )


def distilled(prediction="v_prediction"):
    """(pipeline, distiller) after a short training: two jumps of four steps."""
    unet = small_unet()
    old = DDPMScheduler(prediction_type=prediction, clip_sample=False)
    ddim = DDIMScheduler.from_config(old.config)
    schedule = cases.schedule_of(ddim, 8)
    plan = cases.blocks_plan(schedule, [4])
    distiller = MergeDistiller(plan, student=unet, updates=3)
    optimizer = torch.optim.Adam(unet.parameters(), 1e-4)
    for stage in distiller.rounds(optimizer):
        for _ in stage:
            batch = distiller.batch(torch.randn(4, 1, 8, 8))
            distiller.loss(unet(batch.z, batch.t).sample, batch).backward()
            optimizer.step()
            optimizer.zero_grad()
    unet.eval()
    scheduler = MergeScheduler.from_config(old.config, plan=plan)
    return DDPMPipeline(unet=unet, scheduler=scheduler), distiller


def draw(pipeline, **options):
    pipeline.set_progress_bar_config(disable=True)
    generator = torch.Generator().manual_seed(3)
    return torch.from_numpy(pipeline(batch_size=2, generator=generator, output_type="np", **options).images)


def test_a_pipeline_is_saved_and_loaded_with_its_scheduler(tmp_path):
    pipeline, distiller = distilled()
    images = draw(pipeline, num_inference_steps=2)
    noise = torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(3))
    wanted = (distiller.sample(noise) / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1)
    assert torch.allclose(images, wanted, atol=1e-5) and images.std() > 0
    folder = tmp_path / "a pipeline"
    pipeline.save_pretrained(folder)
    index = json.loads((folder / "model_index.json").read_text())
    assert index["scheduler"] == ["mergeplan.diffusers", "MergeScheduler"]
    again = DiffusionPipeline.from_pretrained(folder)
    assert isinstance(again.scheduler, MergeScheduler) and isinstance(again.scheduler, SchedulerMixin)
    # Whatever number of steps a caller has in mind, the student makes its own.
    for options in ({"num_inference_steps": 2}, {"num_inference_steps": 50}, {}):
        assert torch.allclose(draw(again, **options), images, atol=1e-6)


def test_those_without_this_package_get_the_same_images(tmp_path):
    pipeline, distiller = distilled()
    images = draw(pipeline)
    stock, arguments = pipeline.scheduler.to_stock()
    assert type(stock).__module__.startswith("diffusers.")
    stock.set_timesteps(**arguments)
    z = torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(3)) * stock.init_noise_sigma
    with torch.no_grad():
        for t in stock.timesteps:
            z = stock.step(pipeline.unet(stock.scale_model_input(z, t), t).sample, t, z).prev_sample
    assert torch.allclose((z / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1), images, atol=1e-5)


def test_a_student_of_several_networks_says_so():
    unet = small_unet()
    ddim = DDIMScheduler(clip_sample=False, prediction_type="v_prediction")
    schedule = cases.schedule_of(ddim, 4)
    import torch_cases

    plan = torch_cases.make_plan(4, [[1, 2], [3, 4]], schedule)
    assert MergeDistiller(plan, student=unet, updates=1, prediction_type="v_prediction").one_network
    apart = MergeDistiller(plan, student=unet, updates=1, prediction_type="v_prediction", shared=False)
    assert not apart.one_network
    with pytest.raises(RuntimeError, match="not trained"):
        apart.load_jump(0)
    for stage in apart.rounds():
        for _ in stage:
            apart.batch(torch.randn(2, 1, 8, 8))
    assert [apart.load_jump(k) for k in range(2)] == [4, 2]
    with pytest.raises(IndexError, match="2 jumps"):
        apart.load_jump(2)
