"""Writes golden.json: MS-SSIM and its gradients by the package pytorch-msssim.

    pip install torch pytorch-msssim==1.0.0
    python tests/adapters/autoencoding/golden.py

Pictures are by formula (`picture` below; the test has the same). The package's own ms_ssim takes at least 16 (window - 1) + 1
pixels, so that the case of 32 pixels calls its parts in the way that its ms_ssim does, without that assertion.
"""

import json
import os

import pytorch_msssim
import torch
from pytorch_msssim.ssim import _fspecial_gauss_1d, _ssim

WEIGHTS = [0.0448, 0.2856, 0.3001, 0.2363, 0.1333]


def weights(scales):
    first = WEIGHTS[:scales]
    return first if scales == 5 else [w / sum(first) for w in first]


def picture(shape, shift):
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (0.5 + 0.3 * torch.sin(0.37 * i) + 0.15 * torch.sin(0.011 * i + 3 * shift) + 0.05 * torch.sin(i * i * 0.001 + shift)).view(shape)


def gaussian(window, channels):
    """The package's window, which it makes in float32, in float64."""
    k = torch.arange(window, dtype=torch.float64) - window // 2
    g = torch.exp(-(k**2) / (2 * 1.5**2))
    g = (g / g.sum()).view(1, 1, 1, -1)
    assert torch.allclose(g, _fspecial_gauss_1d(window, 1.5).double(), atol=1e-7)
    return g.repeat(channels, 1, 1, 1)


def stack(x, y, window, scales):
    win = gaussian(window, x.shape[1])
    terms = []
    for s in range(scales):
        similarity, contrast = _ssim(x, y, win=win, data_range=1)
        if s < scales - 1:
            terms.append(torch.relu(contrast))
            padding = [side % 2 for side in x.shape[2:]]
            x = torch.nn.functional.avg_pool2d(x, kernel_size=2, padding=padding)
            y = torch.nn.functional.avg_pool2d(y, kernel_size=2, padding=padding)
    terms.append(torch.relu(similarity))
    return torch.stack(terms)


def terms(x, y, window, scales):
    return stack(x.detach(), y.detach(), window, scales).flatten().tolist()


def parts(x, y, window, scales):
    """What ms_ssim of the package does, for pictures that it refuses."""
    power = torch.tensor(weights(scales), dtype=x.dtype).view(-1, 1, 1)
    return torch.prod(stack(x, y, window, scales) ** power, dim=0).mean(1)


def whole(x, y, window, scales):
    if scales == 1:
        return pytorch_msssim.ssim(x, y, data_range=1, size_average=False, win=gaussian(window, x.shape[1]))
    return pytorch_msssim.ms_ssim(x, y, data_range=1, size_average=False, win=gaussian(window, x.shape[1]), weights=weights(scales))


def case(name, shape, window, scales, call):
    x = picture(shape, 0.0).requires_grad_()
    # Near enough that no term is small: there the package's power has no finite gradient.
    y = (0.6 * picture(shape, 0.0) + 0.4 * picture(shape, 0.4)).requires_grad_()
    assert min(terms(x, y, window, scales)) > 0.05, terms(x, y, window, scales)
    values = call(x, y, window, scales)
    values.sum().backward()
    grads = {}
    for key, tensor in (("a", x), ("b", y)):
        g = tensor.grad.flatten()
        k = torch.arange(g.numel(), dtype=torch.float64)
        grads[key] = {
            "squares": (g * g).sum().item(),
            "along": (g * torch.cos(0.7 * k)).sum().item(),
            "some": [g[int(i)].item() for i in torch.linspace(0, g.numel() - 1, 7)],
        }
    return {"name": name, "shape": shape, "window": window, "scales": scales, "values": values.tolist(), "gradients": grads}


cases = [
    case("five scales, as published", [2, 1, 48, 40], 3, 5, whole),
    case("window 11, five scales", [1, 1, 176, 180], 11, 5, whole),
    case("odd sides, three channels", [2, 3, 75, 81], 5, 3, whole),
    case("one scale", [2, 3, 20, 17], 11, 1, whole),
    case("32 pixels", [3, 1, 32, 32], 7, 3, parts),
]
# The composition above is the package's own where both can be asked.
x, y = picture([2, 3, 75, 81], 0.0), picture([2, 3, 75, 81], 0.4)
assert torch.allclose(parts(x, y, 5, 3), whole(x, y, 5, 3), rtol=1e-12)
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json")
with open(path, "w") as out:
    json.dump({"made_by": f"pytorch-msssim 1.0.0, torch {torch.__version__}", "cases": cases}, out, indent=1)
    out.write("\n")
for c in cases:
    print(c["name"], c["values"])
