"""Times of what users would run instead of `mergeplan analyze` for a covariance: covariance.py FILE.npy NAME [REPEATS].

NAME: dsyrk (numpy calls it for x.T @ x of one float64 array), cov (numpy.cov) or ipca (scikit-learn's IncrementalPCA). Prints the
least number of seconds, without loading the file. The number of threads is that of OPENBLAS_NUM_THREADS.
"""

import sys
import time

import numpy as np

path, name = sys.argv[1:3]
repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 5
x = np.load(path)
x = x.reshape(len(x), -1)
if name == "dsyrk":
    wide = x.astype(np.float64)
    run = lambda: wide.T @ wide
elif name == "cov":
    run = lambda: np.cov(x, rowvar=False)
elif name == "ipca":
    from sklearn.decomposition import IncrementalPCA

    run = lambda: IncrementalPCA(batch_size=4096).fit(x)
else:
    sys.exit(f"{name}: expected dsyrk, cov or ipca")
best = float("inf")
for _ in range(repeats):
    begin = time.perf_counter()
    run()
    best = min(best, time.perf_counter() - begin)
print(best)
