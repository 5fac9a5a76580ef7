#!/usr/bin/env python3
"""diffprivlib's LinearRegression (the functional mechanism) on a CSV or Parquet of `rows` rows and 14 features: reading and fitting apart.

Best settings: pandas' C reader with float64 columns told, pyarrow for Parquet (on all cores), data as one C-contiguous array, bounds given, scikit-learn's input checks left as they are
(they cannot be turned off). One line of JSON.
"""

import json
import sys
import time

import numpy
import pandas
import pyarrow.parquet  # not while the clock runs
from diffprivlib.models import LinearRegression

path = sys.argv[1]
started = time.perf_counter()
if path.endswith(".parquet"):
    frame = pandas.read_parquet(path, engine="pyarrow")
else:
    frame = pandas.read_csv(path, dtype="float64", engine="c")
table = numpy.ascontiguousarray(frame.to_numpy())
read = time.perf_counter()
x, y = table[:, :-1], table[:, -1]
model = LinearRegression(epsilon=1.0, bounds_X=(numpy.full(14, -1.0), numpy.full(14, 1.0)), bounds_y=(-2.0, 2.0), random_state=1)
before = time.perf_counter()
model.fit(x, y)
fitted = time.perf_counter()
print(json.dumps({"kind": "regression", "rows": len(y), "read_s": read - started, "fit_s": fitted - before, "total_s": read - started + fitted - before}))
