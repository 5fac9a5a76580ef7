//! Any bytes as IDX images and labels, plain or gzipped: the first byte says where the labels begin.
#![no_main]
use dosimeter_data::Seed;
use dosimeter_data::datasets::{DatasetSpec, IdxImages, load};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (Ok(folder), Some((at, bytes))) = (tempfile::tempdir(), bytes.split_first()) else {
        return;
    };
    let (images, labels) = bytes.split_at(usize::from(*at).min(bytes.len()));
    let path = folder.path().join("images");
    if std::fs::write(&path, images)
        .and(std::fs::write(folder.path().join("labels"), labels))
        .is_err()
    {
        return;
    }
    if let Ok(data) =
        load(&DatasetSpec::Idx(IdxImages { path, labels: None, classes: None }), Seed::root(0))
    {
        assert!(!data.is_empty() && data.classes >= 2 && data.shape().is_some());
        assert!(data.class_counts().iter().sum::<usize>() == data.len());
    }
});
