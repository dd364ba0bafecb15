"""Runs a command and prints the largest resident memory of any of its processes, as JSON: peak.py COMMAND ARGUMENT..."""

import json
import resource
import subprocess
import sys

subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))
