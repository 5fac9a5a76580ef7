"""Runs every NAME.onnx of a folder on the numbers of NAME.x and writes the outputs to NAME.y, all little-endian float32.

    pip install -r golden/requirements.txt
    python crates/model/tests/onnx_runtime.py FOLDER
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    x = np.fromfile(path.with_suffix(".x"), dtype="<f4").reshape(-1, *given.shape[1:])
    (y,) = session.run(None, {given.name: x})
    y.astype("<f4").tofile(path.with_suffix(".y"))
