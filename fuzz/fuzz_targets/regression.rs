//! Any bytes as a bounds file and a table for regression: up to the first NUL byte the bounds, behind it the table (CSV, also
//! gzip or tar). Without one, a table of the usual bounds.
#![no_main]
use dosimeter_data::Error;
use dosimeter_data::regression::{BoundedFile, Reading};
use std::num::NonZeroUsize;

const BOUNDS: &[u8] = b"[columns.a]\nlower = -1\nupper = 10\nmissing = \"midpoint\"\n[columns.c]\ncategories = [\"x\", \"y\", \"1\"]\n[target]\nname = \"t\"\nlower = 0\nupper = 1\n";

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(folder) = tempfile::tempdir() else { return };
    let (bounds, table) = match bytes.iter().position(|b| *b == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (BOUNDS, bytes),
    };
    let file = BoundedFile { path: folder.path().join("t"), bounds: folder.path().join("b") };
    if std::fs::write(&file.path, table).is_err() || std::fs::write(&file.bounds, bounds).is_err() {
        return;
    }
    // Whatever is accepted lies within its bounds, and threads change nothing.
    let read = |threads: usize| {
        let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        let mut rows = Vec::new();
        let read = file.each_block::<Error>(Reading { threads, needs_target: false }, |block| {
            rows.extend(block.rows().map(|(row, x, y)| (row, x.to_vec(), y)));
            Ok(())
        });
        (read.map_err(|e| e.to_string()), rows)
    };
    let one = read(1);
    if let (Ok(layout), (Ok(_), rows)) = (file.layout(false), &one) {
        let mut last = 0;
        for (row, x, y) in rows {
            assert!(*row >= last && x.len() == layout.width());
            last = *row;
            for (x, column) in x.iter().zip(&layout.columns) {
                assert!((column.lower..=column.upper).contains(x));
            }
            assert!(y.is_none_or(|y| (layout.target.lower..=layout.target.upper).contains(&y)));
        }
    }
    // Numbers that are not finite do not come this far, so rows are equal if they are the same.
    assert!(read(2) == one);
});
