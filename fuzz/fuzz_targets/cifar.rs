//! Any bytes as CIFAR records or an archive of them; the first byte chooses the form.
#![no_main]
use dosimeter_data::Seed;
use dosimeter_data::datasets::{CifarForm, CifarImages, DatasetSpec, load};
use std::io::Write;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (Ok(mut file), Some((form, bytes))) = (tempfile::NamedTempFile::new(), bytes.split_first())
    else {
        return;
    };
    if file.write_all(bytes).is_err() || file.flush().is_err() {
        return;
    }
    let form =
        [CifarForm::Ten, CifarForm::HundredFine, CifarForm::HundredCoarse][usize::from(form % 3)];
    let path = file.path().to_owned();
    let spec = DatasetSpec::Cifar(CifarImages { path, form, files: Vec::new(), classes: Some(2) });
    if let Ok(data) = load(&spec, Seed::root(0)) {
        assert!(data.classes == 2 && data.shape() == Some([3, 32, 32]));
        assert!(data.class_counts().iter().sum::<usize>() == data.len());
    }
});
