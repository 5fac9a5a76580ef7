"""Forward passes of an ONNX model by ONNX Runtime on one thread; the counterpart of crates/model/examples/bench_inference.rs.

    python bench/inference/peer_inference.py --model FILE --records N [--seconds S]

Best settings: all graph optimizations (the default), one thread, no spinning.
"""

import argparse
import json
import time

import numpy as np
import onnxruntime

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--records", type=int, default=1)
parser.add_argument("--seconds", type=float, default=1.0)
A = parser.parse_args()

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(A.model, options, providers=["CPUExecutionProvider"])
(given,) = session.get_inputs()
shape = [A.records, *given.shape[1:]]
count = int(np.prod(shape))
x = (((np.arange(count) * 7919 + 13) % 1009).astype(np.float32) / np.float32(504.5) - np.float32(1)).reshape(shape)
for _ in range(2):
    session.run(None, {given.name: x})
times, start = [], time.perf_counter()
while time.perf_counter() - start < A.seconds or len(times) < 5:
    begin = time.process_time()
    y = session.run(None, {given.name: x})[0]
    times.append((time.process_time() - begin) * 1e3)
times.sort()
print(json.dumps(dict(kind="inference", records=A.records, cpu_median_ms=times[len(times) // 2], cpu_min_ms=times[0], n=len(times),
                      largest=float(np.abs(y).max()), outputs=[float(v) for v in y.ravel()[:10]])))
