"""Parts of latents that have samples enough for principal directions.

    python cut.py LATENTS middle.npy positions.npy

LATENTS is a folder of `mergeplan encode`. middle.npy holds the 4 x 4 positions in the middle of every latent, positions.npy every
position as a sample of its channels alone.
"""
import glob
import json
import struct
import sys

import numpy as np


def read(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        begin, end = header["latents"]["data_offsets"]
        f.seek(begin, 1)
        return np.frombuffer(f.read(end - begin), "<f4").reshape(header["latents"]["shape"])


folder, middle, positions = sys.argv[1:]
z = np.concatenate([read(path) for path in sorted(glob.glob(glob.escape(folder) + "/part-*.safetensors"))])
top, left = z.shape[2] // 2 - 2, z.shape[3] // 2 - 2
np.save(middle, np.ascontiguousarray(z[:, :, top : top + 4, left : left + 4]))
np.save(positions, np.ascontiguousarray(z.transpose(0, 2, 3, 1).reshape(-1, z.shape[1])))
