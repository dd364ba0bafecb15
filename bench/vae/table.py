"""Writes the tables of README.md: table.py FOLDER_OF_RESULTS README.md"""

import datetime
import json
import os
import re
import statistics
import sys

NETWORKS = (
    ("mssim", "AutoencoderKL of `examples/mssim_vae`, 1 × 32 × 32"),
    ("kl", "AutoencoderKL of the reference, 3 × 64 × 64"),
    ("large", "AutoencoderKL as large as Stable Diffusion's, random weights, 3 × 64 × 64"),
    ("tiny", "AutoencoderTiny of the reference, 3 × 64 × 64"),
    ("taesd", "TAESD for FLUX.2, TorchScript, 3 × 64 × 64"),
)


def turns(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def row(folder, name, words, threads):
    ours, peer = turns(f"{folder}/{name}.{threads}.ours"), turns(f"{folder}/{name}.{threads}.peer")
    if not ours:
        return []
    whole, theirs = (max(o["whole"] for o in ours), max(p["network"] for p in peer))
    ratio = statistics.median(o["whole"] / p["network"] for o, p in zip(ours, peer, strict=True))
    start = min(o["start"] for o in ours)
    return [f"| {words} | {peer[0]['parameters'] / 1e6:.2f} M | {threads} | {whole:.4g} | {theirs:.4g} | {whole / theirs:.2f} × | {ratio:.2f} × | {start:.2f} s |"]


def main():
    folder, readme = sys.argv[1:]
    lines = [
        "| encoder | parameters | threads | `mergeplan encode`, the whole loop | PyTorch, eager, network only | of the best | median of turns | start |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, words in NETWORKS:
        for threads in (1, 2):
            lines += row(folder, name, words, threads)
    script = [f"{max(p['network'] for p in turns(f'{folder}/taesd.{t}.script')):.4g} on {t}" for t in (1, 2) if turns(f"{folder}/taesd.{t}.script")]
    memory = ["| batch | 500 pictures | 2,000 | 8,000 |", "|---|---|---|---|"]
    peaks = {(m["batch"], m["samples"]): m["peak_mb"] for m in turns(f"{folder}/memory")}
    for batch in sorted({b for b, _ in peaks}):
        memory.append(f"| {batch} | " + " | ".join(f"{peaks[batch, s]:.0f} MB" for s in (500, 2000, 8000)) + " |")
    tables = {
        "note": [""],
        "machine": [f"{os.cpu_count()} cores, load {os.getloadavg()[1]:.1f} over the last five minutes, {datetime.date.today()}."],
        "throughput": lines,
        "script": [f"TAESD's TorchScript as Python runs it (`torch.jit.load`, its optimizer on): {', '.join(script)} thread(s)." if script else ""],
        "memory": memory,
    }
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    for name, content in tables.items():
        block = f"<!-- {name} -->\n" + "\n".join(content) + f"\n<!-- end of {name} -->"
        text, count = re.subn(rf"<!-- {name} -->.*?<!-- end of {name} -->", lambda _, b=block: b, text, flags=re.S)
        assert count == 1, name
    with open(readme, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
