//! Any bytes as an image beside a sound one, or (odd first byte) as a zip of class folders.
#![no_main]
use dosimeter_data::Seed;
use dosimeter_data::datasets::{Colour, DatasetSpec, ImageFolder, load};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (Ok(folder), Some((how, bytes))) = (tempfile::tempdir(), bytes.split_first()) else {
        return;
    };
    let root = folder.path();
    let write = || {
        if how % 2 == 1 {
            return std::fs::write(root.join("set.zip"), bytes);
        }
        std::fs::create_dir(root.join("a"))?;
        std::fs::create_dir(root.join("b"))?;
        std::fs::write(root.join("a/1.png"), bytes)?;
        std::fs::write(root.join("b/1.pgm"), b"P5\n2 2\n255\n\x01\x02\x03\x04")
    };
    if write().is_err() {
        return;
    }
    let path = if how % 2 == 1 { root.join("set.zip") } else { root.to_owned() };
    let (colour, resize) =
        if how % 4 < 2 { (Colour::AsIs, None) } else { (Colour::Grey, Some([2, 2])) };
    let spec = ImageFolder { path, colour, crop: None, resize, classes: None };
    if let Ok(data) = load(&DatasetSpec::ImageFolder(spec), Seed::root(0)) {
        assert!(data.len() >= 2 && data.classes >= 2 && data.shape().is_some());
        assert_eq!(data.fingerprint().len(), 64);
    }
});
