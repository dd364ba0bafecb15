"""One distillation update of a network in eager PyTorch: two teacher calls, forward, backward, fused AdamW, EMA.

    network_eager.py PATH [UPDATES [BATCH [DEVICE]]]

PATH is a folder of diffusers (a UNet2DModel), FOLDER/net.py:NAME, whose load(NAME) gives (network, anything), called with z [B, 1, 28, 28]
and t [B], or FILE.ts, TorchScript that is called in the same way. DEVICE is cpu or cuda. Prints seconds per update as JSON, the fastest of
five turns.
"""
import copy
import importlib.util
import json
import sys
import time

import torch

TURNS = 5


def load(path):
    if ".py:" in path:
        file, name = path.rsplit(":", 1)
        sys.dont_write_bytecode = True
        spec = importlib.util.spec_from_file_location("net", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["net"] = module
        spec.loader.exec_module(module)
        network = module.load(name)[0]
        return network, network, (1, 28, 28), (1.0, 0.875)
    if path.endswith(".ts"):
        network = torch.jit.load(path).eval()
        return network, network, (1, 28, 28), (1.0, 0.875)
    import diffusers

    diffusers.logging.set_verbosity_error()
    network = diffusers.UNet2DModel.from_pretrained(path, low_cpu_mem_usage=False).eval()
    for p in network.parameters():
        p.data = p.data.clone()
    c = network.config
    return network, lambda z, t: network(z, t).sample, (c.in_channels, c.sample_size, c.sample_size), (999, 874)


def main(path, updates="20", batch="32", device="cpu"):
    updates, batch = int(updates), int(batch)
    student, call, shape, levels = load(path)
    student.to(device)
    teacher, call_teacher = copy.deepcopy(student), None
    call_teacher = teacher if call is student else lambda z, t: teacher(z, t).sample
    parameters = list(student.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    average = [p.detach().clone() for p in parameters]
    times = [torch.full((batch,), t, device=device) for t in levels]

    def step():
        z = torch.randn(batch, *shape, device=device)
        with torch.no_grad():
            target = z
            for t in times:
                target = 0.9 * target + 0.1 * call_teacher(target, t)
        out = 0.8 * z + 0.2 * call(z, times[0])
        loss = (out - target).flatten(1).square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, parameters, 0.01)
        return loss.item()

    fastest = float("inf")
    for turn in range(TURNS + 1):
        begin = time.perf_counter()
        for _ in range(updates):
            step()
        if turn > 0:
            fastest = min(fastest, time.perf_counter() - begin)
    parameters = sum(p.numel() for p in student.parameters())
    print(json.dumps({"update": fastest / updates, "batch": batch, "device": device, "threads": torch.get_num_threads(), "parameters": parameters}))


if __name__ == "__main__":
    main(*sys.argv[1:])
