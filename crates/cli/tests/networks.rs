//! `dosimeter model` on small models.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod command;

use std::path::Path;

/// A model of `golden/onnx_operators.json`.
#[derive(serde::Deserialize)]
struct Case {
    name: String,
    model: String,
}

/// Three images of three numbers in two classes, and the models `gemm.onnx` and `normalized.onnx`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("images.toml", b"[dataset]\nkind = \"idx\"\npath = \"images\"\n");
    write("images", b"\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x03a\xf0\0de\xffg\x01i");
    write("labels", b"\0\0\x08\x01\0\0\0\x03\x01\0\x01");
    let cases = dosimeter_testing::golden::<Case>("onnx_operators").cases;
    for (file, name) in
        [("gemm.onnx", "Gemm opset 17"), ("normalized.onnx", "BatchNormalization opset 17")]
    {
        let hex = &cases.iter().find(|c| c.name == name).unwrap().model;
        let digits = (0..hex.len()).step_by(2);
        let bytes: Vec<u8> =
            digits.map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
        write(file, &bytes);
    }
    folder
}
fn dosimeter(folder: &Path, command: &str) -> (Option<i32>, String, String) {
    command::run(folder, command.split(' '))
}
fn json(folder: &Path, command: &str) -> serde_json::Value {
    let (code, stdout, stderr) = dosimeter(folder, &format!("{command} --json"));
    assert_eq!(code, Some(0), "{command}: {stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn a_network_runs_on_a_data_set_and_comes_back_from_both_forms() {
    let folder = folder();
    let folder = folder.path();
    let run = |model: &str, out: &str| {
        let ran = json(folder, &format!("model run {model} images.toml --mean 0.5 --out {out}"));
        (ran, std::fs::read_to_string(folder.join(out)).unwrap())
    };
    let (ran, table) = run("gemm.onnx", "first.csv");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("record,class,output_0,output_1"));
    let right = lines.filter(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let [a, b] = [2, 3].map(|i: usize| fields[i].parse::<f32>().unwrap());
        fields[1] == if b > a { "\"1\"" } else { "\"0\"" }
    });
    let right = right.count();
    assert!((ran["accuracy"].as_f64().unwrap() - right as f64 / 3.0).abs() < 1e-12, "{table}");
    assert_eq!(ran["records"], 3);
    assert!(ran.get("accuracy_within_top").is_none());
    // Both outputs, the larger one first, and every class is among them.
    let both = json(folder, "model run gemm.onnx images.toml --mean 0.5 --top 2 --out top.csv");
    assert_eq!((&both["accuracy"], &both["accuracy_within_top"]), (&ran["accuracy"], &1.0.into()));
    let top = std::fs::read_to_string(folder.join("top.csv")).unwrap();
    assert!(top.starts_with("record,class,top_1,output_1,top_2,output_2\n"), "{top}");
    for (line, top) in table.lines().zip(top.lines()).skip(1) {
        let [all, top] = [line, top].map(|line| line.split(',').collect::<Vec<&str>>());
        let [a, b] = [2, 3].map(|i: usize| all[i].parse::<f32>().unwrap());
        let right = if b > a {
            ["\"1\"", all[3], "\"0\"", all[2]]
        } else {
            ["\"0\"", all[2], "\"1\"", all[3]]
        };
        assert_eq!(top[2..], right);
    }
    for out in ["again.onnx", "again.net"] {
        json(folder, &format!("model export gemm.onnx --out {out}"));
        assert_eq!(run(out, "again.csv").1, table, "{out}");
    }
    let facts = json(folder, "model inspect again.net");
    assert_eq!((&facts["format"], &facts["parameters"]), (&"checkpoint".into(), &8.into()));
    assert_eq!((&facts["multiplications"], &facts["trainable"]), (&6.into(), &true.into()));
}

#[test]
fn batch_normalization_is_told_and_can_be_replaced() {
    let folder = folder();
    let (code, stdout, _) = dosimeter(folder.path(), "model inspect normalized.onnx");
    assert_eq!(code, Some(0));
    assert!(stdout.contains("note: 1 batch normalizations"), "{stdout}");
    assert!(stdout.contains("DP training      not as it is"), "{stdout}");
    let facts =
        json(folder.path(), "model fold normalized.onnx --group-normalization 2 --out n.onnx");
    assert_eq!(
        (&facts["trainable"], &facts["layers"][0]["kind"]),
        (&true.into(), &"normalization".into())
    );
}

#[test]
fn outputs_that_are_no_numbers_are_told() {
    let folder = folder();
    let folder = folder.path();
    let command = "model run gemm.onnx images.toml --deviation 1e-38 --highest 1e38";
    assert_eq!(json(folder, command)["not_finite"], 3);
    assert!(dosimeter(folder, command).1.contains("outputs of 3 records are not finite numbers"));
    assert!(json(folder, "model run gemm.onnx images.toml").get("not_finite").is_none());
}

#[test]
fn what_does_not_fit_is_refused_with_what_was_needed() {
    let folder = folder();
    for (command, error) in [
        (
            "model run normalized.onnx images.toml",
            "it takes records of shape [2, 3, 2], the data have images of shape [1, 1, 3]",
        ),
        (
            "model run gemm.onnx images.toml --mean 1,2",
            "1 channels need as many means and deviations, got 2",
        ),
        (
            "model run gemm.onnx images.toml --top 3",
            "of its 2 outputs the 3 largest were asked for",
        ),
        ("model run gemm.onnx images.toml --top 0", "--top <COUNT>"),
        ("model run gemm.onnx images.toml --deviation 0", "needs finite numbers above 0, got 0"),
        ("model inspect images", "images: not a model that can be read"),
        ("model inspect missing", "missing: "),
        ("model inspect .", "needs a file, got a folder"),
        ("model run gemm.onnx images.toml --out gemm.onnx", "it would be overwritten"),
        ("model run gemm.onnx images.toml --out ./images.toml", "it would be overwritten"),
        ("model run gemm.onnx images.toml --out images", "it would be overwritten"),
        ("model fold gemm.onnx --out gemm.onnx", "it would be overwritten"),
        ("model inspect gemm.onnx --output z", "it has no value \"z\""),
    ] {
        let (code, _, stderr) = dosimeter(folder.path(), command);
        assert_eq!(code, Some(2), "{command}: {stderr}");
        assert!(stderr.contains(error), "{command}: {stderr}");
    }
}
