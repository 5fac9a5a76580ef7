"""Writes onnx_models.json: what ONNX Runtime gives for the pre-trained models of the shared reference material.

    pip install onnxruntime==1.32.0 numpy==2.4.6
    python golden/onnx_models.py

Record r of the input is ((i * 7919 + 13) mod 1009) / 504.5 - 1 at its number i of all records. Kept are up to 64 outputs
of each of two records, evenly spread over all.
"""
import json
import pathlib
import sys

import numpy as np
import onnxruntime

here = pathlib.Path(__file__).resolve().parent
roots = [folder / "shared/data/models" for folder in here.parents]
root = next((r for r in roots if r.exists()), None)
if root is None:
    sys.exit("the shared reference material is not beside the project")
# Shapes of a record that a model leaves open.
open_shapes = {"vgg16_block1_3_features.onnx": [3, 48, 40]}

cases = []
for path in sorted(root.rglob("*.onnx")):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    record = open_shapes.get(path.name, given.shape[1:])
    count = 2 * int(np.prod(record))
    x = ((np.arange(count) * 7919 + 13) % 1009).astype(np.float32) / np.float32(504.5) - np.float32(1)
    x = x.reshape(2, *record)
    batches = [x[:1], x[1:]] if given.shape[0] == 1 else [x]
    y = np.concatenate([session.run(None, {given.name: b})[0] for b in batches]).reshape(2, -1)
    places = np.unique(np.linspace(0, y.shape[1] - 1, 64).astype(int))
    cases.append({
        "file": str(path.relative_to(root)),
        "record": record,
        "outputs": y.shape[1],
        "places": places.tolist(),
        "y": [float(f"{v:.6g}") for v in y[:, places].ravel()],
        "largest": float(f"{np.abs(y).max():.6g}"),
    })

answer = {
    "provenance": {
        "script": "golden/onnx_models.py",
        "oracle": f"ONNX Runtime {onnxruntime.__version__} on CPU",
        "source": "the models of the shared reference material, whose sources it names",
    },
    "tolerance": 1e-4,
}
lines = ",\n".join(json.dumps(case) for case in cases)
text = json.dumps(answer, indent=1)[:-2] + ',\n "cases": [\n' + lines + "\n]}\n"
pathlib.Path(__file__).with_suffix(".json").write_text(text)
