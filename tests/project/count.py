"""Adds up what tests/run.sh left in a folder: GoogleTest cases, other ctest entries, and single checks.

Prints what failed, and "N passed, N failed, N skipped" as the last line; the exit code is 1 where anything failed or
nothing ran.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml


def main(folder: pathlib.Path) -> int:
    passed, failed, skipped = 0, [], []
    for path in sorted(folder.glob("ctest-*.xml")):
        preset = path.stem.removeprefix("ctest-")
        for case in xml.parse(path).getroot().iter("testcase"):
            name = case.get("name")
            status = case.get("status")
            cases = folder / preset / f"{name}.xml"
            if cases.exists():
                before = len(failed)
                for inner in xml.parse(cases).getroot().iter("testcase"):
                    label = f"{preset} {inner.get('classname')}.{inner.get('name')}"
                    if inner.find("failure") is not None:
                        failed.append(label)
                    elif inner.find("skipped") is not None or inner.get("result") == "skipped":
                        reason = inner.find("skipped")
                        skipped.append((label, reason.get("message", "") if reason is not None else ""))
                    elif inner.get("status") == "run":
                        passed += 1
                if status == "fail" and len(failed) == before:
                    failed.append(f"{preset} {name} (the program itself)")
            elif status == "run":
                passed += 1
            elif status == "notrun" or status == "disabled":
                skipped.append((f"{preset} {name}", ""))
            else:
                failed.append(f"{preset} {name}")
    checks = folder / "checks"
    if checks.exists():
        for line in checks.read_text().splitlines():
            name, result = line.split()
            if result == "passed":
                passed += 1
            else:
                failed.append(name)
    print()
    for name, reason in skipped:
        print(f"skipped: {name} {reason.strip()}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
