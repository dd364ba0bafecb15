"""How far decoded samples are from the teacher's for the same noise.

    python apart.py teacher STUDENT ...      (NAME.npz of pictures and NAME-latents.npz of latents, in this folder)

For every student: the mean over samples of the root mean square difference, of latents and of pictures (whose range is one).
"""
import sys

import numpy as np

teacher, *students = sys.argv[1:]


def load(name):
    return np.load(name + ".npz")["pictures"].astype(float), np.load(name + "-latents.npz")["samples"].astype(float)


def apart(a, b):
    return np.sqrt(((a - b) ** 2).reshape(len(a), -1).mean(1)).mean()


pictures, latents = load(teacher)
print(f"| student | latents (teacher's root mean square: {np.sqrt((latents ** 2).mean()):.3f}) | pictures |")
print("|---|---|---|")
for name in students:
    p, z = load(name)
    print(f"| {name} | {apart(z, latents):.4f} | {apart(p, pictures):.5f} |")
