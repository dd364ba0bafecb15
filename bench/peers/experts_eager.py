"""Updates of the affine mixture-of-experts student in eager torch, one thread, as CSV:
inputs,microseconds of the processor. The same net, batch and optimizer as experts_bench; `fixed` trains on tensors made
once, `fresh` draws z and takes one step of the closed-form teacher for every update."""

import math
import time

import torch

D, E, H, M, K, BATCH = 2, 8, 64, 64, 8, 2560
ALPHA, SIGMA = math.cos(math.pi / 4), math.sin(math.pi / 4)  # level 16 of 32
ALPHA1, SIGMA1 = math.cos(15 / 64 * math.pi), math.sin(15 / 64 * math.pi)
SPREAD2 = 0.3**2


def teacher_step(means, z):
    """eq:gmm_single_operator_moe with equal weights and covariances SPREAD2 I."""
    c = ALPHA**2 * SPREAD2 + SIGMA**2
    a = (ALPHA * ALPHA1 * SPREAD2 + SIGMA * SIGMA1) / c
    gamma = torch.softmax(-torch.cdist(z, ALPHA * means).square() / (2 * c), 1)
    return a * z + (ALPHA1 - a * ALPHA) * (gamma @ means)


class Student(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Sequential(torch.nn.Linear(D + M, H), torch.nn.ReLU(), torch.nn.Linear(H, E))
        self.expert = torch.nn.Sequential(torch.nn.Linear(M, H), torch.nn.ReLU(), torch.nn.Linear(H, E * (D * D + D)))
        self.register_buffer("identity", torch.eye(D))

    def forward(self, z, emb):
        weight = torch.softmax(self.gate(torch.cat([z, emb.expand(len(z), M)], 1)), 1)
        out = self.expert(emb).view(E, D * D + D)
        a = self.identity + out[:, : D * D].view(E, D, D)
        b = out[:, D * D :]
        # All experts at once: [batch, E D] = z [batch, D] times [D, E D].
        led = torch.addmm(b.reshape(-1), z, a.permute(2, 0, 1).reshape(D, E * D)).view(len(z), E, D)
        return (weight.unsqueeze(2) * led).sum(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    angle = torch.arange(K) * (2 * math.pi / K)
    means = 5 * torch.stack([angle.cos(), angle.sin()], 1)
    w = 10000.0 ** (-2 * torch.arange(1, M // 2 + 1) / M)
    emb = torch.stack([(w / 2).sin(), (w / 2).cos()], 1).reshape(M)

    def draw():
        z = ALPHA * means[torch.randint(K, (BATCH,))]
        z = z + math.sqrt(ALPHA**2 * SPREAD2 + SIGMA**2) * torch.randn(BATCH, D)
        with torch.no_grad():
            return z, teacher_step(means, z)

    fixed = draw()
    print("inputs,microseconds")
    for name in ("fixed", "fresh"):
        student = Student()
        adam = torch.optim.Adam(student.parameters(), lr=1e-3)

        def update():
            z, target = fixed if name == "fixed" else draw()
            loss = (student(z, emb) - target).square().sum(1).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()

        best = math.inf
        for run in range(22):
            start = time.process_time()
            for _ in range(20):
                update()
            if run >= 2:
                best = min(best, (time.process_time() - start) / 20)
        print(f"{name},{best * 1e6:.1f}")


if __name__ == "__main__":
    main()
