"""Writes the tables of README.md: table.py FOLDER_OF_RESULTS README.md"""

import datetime
import json
import os
import re
import sys

WORK = (("script", "TorchScript (`lin.ts`)"), ("unet", "diffusers UNet2DModel, native"))


def turns(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    folder, readme = sys.argv[1:]
    lines = ["| network | parameters | ours | PyTorch, eager | ours / theirs | goal | the executor around it | goal |", "|---|---|---|---|---|---|---|---|"]
    for name, words in WORK:
        if not os.path.exists(f"{folder}/{name}.ours"):
            continue
        ours, peer = turns(f"{folder}/{name}.ours"), turns(f"{folder}/{name}.peer")
        # The fastest turn of each, so that no busy moment counts.
        least = {key: min(o[key] for o in ours) for key in ("bare", "trainer", "executor")}
        theirs = min(p["update"] for p in peer)
        around = 100 * (least["executor"] / least["bare"] - 1)
        lines.append(
            f"| {words} | {peer[0]['parameters'] / 1e6:.2f} M | {least['trainer']:.4f} s | {theirs:.4f} s | {least['trainer'] / theirs:.2f} × | 1.05 × "
            f"| {around:+.1f} % of {least['bare']:.4f} s | 1 % |"
        )
    loads = turns(f"{folder}/load")
    read, load = min(x["read"] for x in loads), min(x["load"] for x in loads)
    cores = os.cpu_count()
    tables = {
        "machine": [f"{cores} cores, load {os.getloadavg()[1]:.1f} over the last five minutes, {datetime.date.today()}."],
        "updates": lines,
        "load": [f"0.98 GB: the file read in {read:.2f} s, the network ready in {load:.2f} s: {load / read:.2f} × (goal 1.3 ×)."],
    }
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    for name, content in tables.items():
        block = f"<!-- {name} -->\n" + "\n".join(content) + f"\n<!-- end of {name} -->"
        text, count = re.subn(rf"<!-- {name} -->.*?<!-- end of {name} -->", lambda _: block, text, flags=re.S)
        assert count == 1, name
    with open(readme, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
