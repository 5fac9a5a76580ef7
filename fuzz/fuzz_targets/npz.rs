//! Any bytes as an NPY array inside an otherwise sound NPZ, where a bare zip would mostly fail at its checksums.
#![no_main]
use dosimeter_data::Seed;
use dosimeter_data::datasets::{ColumnSpec, DatasetSpec, NpzTable, load};
use std::io::Write;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::NamedTempFile::new() else { return };
    let (inputs, labels) = bytes.split_at(bytes.len() * 3 / 4);
    let archive = stored(&[("x.npy", inputs), ("y.npy", labels)]);
    if file.write_all(&archive).is_err() || file.flush().is_err() {
        return;
    }
    let spec = DatasetSpec::Npz(NpzTable {
        path: file.path().to_owned(),
        inputs: "x".into(),
        labels: "y".into(),
        ignore: Vec::new(),
        columns: Default::default(),
        other_columns: Some(ColumnSpec::Category { levels: None }),
        classes: None,
    });
    if let Ok(data) = load(&spec, Seed::root(0)) {
        assert!(!data.is_empty() && data.classes >= 2);
    }
});

/// A zip of uncompressed members, by the format's fixed layout (APPNOTE 4.3).
fn stored(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let offset = zip.len() as u32;
        let mut fields = Vec::new();
        fields.extend_from_slice(&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        fields.extend_from_slice(&crc32(bytes).to_le_bytes());
        fields.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        fields.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        fields.extend_from_slice(&(name.len() as u16).to_le_bytes());
        fields.extend_from_slice(&[0, 0]);
        zip.extend_from_slice(b"PK\x03\x04");
        zip.extend_from_slice(&fields);
        zip.extend_from_slice(name.as_bytes());
        zip.extend_from_slice(bytes);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&fields);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, members) = (zip.len() as u32, (members.len() as u16).to_le_bytes());
    zip.extend_from_slice(&directory);
    zip.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    zip.extend_from_slice(&members);
    zip.extend_from_slice(&members);
    zip.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    zip.extend_from_slice(&start.to_le_bytes());
    zip.extend_from_slice(&[0, 0]);
    zip
}
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| (c >> 1) ^ (0xEDB8_8320 * (c & 1)))
    };
    !bytes.iter().fold(!0, step)
}
