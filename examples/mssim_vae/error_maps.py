#!/usr/bin/env python3
"""Error maps: what students make of the same noise beside what the teacher makes of it, decoded.

    python3 error_maps.py OUT.png TEACHER.npz STUDENT.npz ...    as `mergeplan decode --dtype float32` writes them, pixels of -1 to 1

The first row of the picture is the teacher's; then every student has a row of samples and, beside them, their absolute differences, blue for
none to red for the largest of the picture. Needs nothing but Python.
"""

import array
import ast
import struct
import sys
import zipfile
import zlib

SHOWN = 8


def clip(x):
    return min(1.0, max(0.0, x))


def pictures(path):
    """The first pictures as one row of them, in grey, black 0 and white 1: a list of lines."""
    with zipfile.ZipFile(path) as file:
        data = file.read("pictures.npy")
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + length].decode())
    _, channels, height, width = header["shape"]
    assert header["descr"] == "<f4" and not header["fortran_order"], path
    values = array.array("f", data[10 + length :])
    at = lambda k, c, y, x: clip((values[((k * channels + c) * height + y) * width + x] + 1) / 2)
    return [[sum(at(k, c, y, x) for c in range(channels)) / channels for k in range(SHOWN) for x in range(width)] for y in range(height)]


def heat(share):
    return [clip(1.5 - abs(4 * share - centre)) for centre in (3, 2, 1)]


def write_png(path, lines):
    """`lines` of pixels [red, green, blue], 0 to 1."""
    rows = b"".join(b"\0" + bytes(round(255 * x) for pixel in line for x in pixel) for line in lines)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", len(lines[0]), len(lines), 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def main(out, teacher, *students):
    reference = pictures(teacher)
    shown = [reference] + [pictures(path) for path in students]
    apart = [[[abs(a - b) for a, b in zip(own, other)] for own, other in zip(x, reference)] for x in shown]
    most = max(x for difference in apart for line in difference for x in line)
    lines = []
    for x, difference in zip(shown, apart):
        for own, far in zip(x, difference):
            lines.append([[grey] * 3 for grey in own] + [heat(d / (most or 1)) for d in far])
    write_png(out, lines)
    print(f"{out}: red is a difference of {most:.3g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
