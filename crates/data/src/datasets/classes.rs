//! Labels: from class numbers or one-hot rows in a file to numbers from 0.
use super::table::LEVEL_LIMIT;
use crate::{Error, FieldProblem};
use std::path::Path;

/// Class of each record below `names.len()`, and how the file calls each class.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) labels: Vec<u32>,
    pub(super) names: Vec<String>,
}
/// Whether the classes in the file must be numbered without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gaps {
    /// A number nobody has between two that somebody has is an error.
    Refused,
    /// The most frequent classes are selected afterwards, or the numbers are codes.
    Allowed,
}

/// Numbers the distinct class numbers in ascending order.
pub(super) fn number(file: &Path, numbers: &[u32], gaps: Gaps) -> Result<Classes, Error> {
    let mut distinct = numbers.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.is_empty() {
        return Err(Error::NoRecords { file: file.to_owned() });
    }
    if distinct.len() < 2 {
        return Err(Error::TooFewClasses { file: file.to_owned(), needs: 2, have: distinct.len() });
    }
    if distinct.len() > LEVEL_LIMIT {
        let column = "label".to_owned();
        return Err(Error::TooManyLevels { file: file.to_owned(), column, limit: LEVEL_LIMIT });
    }
    if let Some(pair) = distinct.windows(2).find(|pair| pair[1] != pair[0] + 1)
        && gaps == Gaps::Refused
    {
        let class = u64::from(pair[0]) + 1;
        return Err(Error::ClassWithoutRecord { file: file.to_owned(), class });
    }
    let labels = numbers.iter().map(|n| distinct.partition_point(|d| d < n) as u32).collect();
    Ok(Classes { labels, names: distinct.iter().map(u32::to_string).collect() })
}

/// A class number written as text: whole, also as `13.0` or `"13"`.
pub(super) fn parse(field: &[u8]) -> Result<u32, FieldProblem> {
    let text = std::str::from_utf8(field).map_err(|_| FieldProblem::NotUtf8)?;
    let text = text.trim().trim_matches('"').trim();
    if text.is_empty() {
        return Err(FieldProblem::Empty);
    }
    let digits = text.strip_suffix(".0").unwrap_or(text);
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(FieldProblem::NotAClassNumber);
    }
    digits.parse().map_err(|_| FieldProblem::NotAClassNumber)
}

/// A class number held as a number.
pub(super) fn from_number(number: f64) -> Result<u32, FieldProblem> {
    let whole = number.trunc();
    let in_range = (0.0..=f64::from(u32::MAX)).contains(&number);
    if in_range && whole.total_cmp(&number).is_eq() {
        Ok(whole as u32)
    } else {
        Err(FieldProblem::NotAClassNumber)
    }
}

/// The place of the only 1 in a one-hot row.
pub(super) fn from_one_hot(row: &[f64]) -> Result<u32, FieldProblem> {
    let mut class = None;
    for (i, &value) in row.iter().enumerate() {
        match super::bits::from_number(value) {
            Some(false) => {}
            Some(true) if class.is_none() => class = Some(i as u32),
            _ => return Err(FieldProblem::NotOneHot),
        }
    }
    class.ok_or(FieldProblem::NotOneHot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_numbers_are_renumbered_in_ascending_order_and_keep_their_names() {
        let classes = number(Path::new("f"), &[3, 1, 2, 3], Gaps::Refused).unwrap();
        assert_eq!(classes.labels, [2, 0, 1, 2]);
        assert_eq!(classes.names, ["1", "2", "3"]);
    }
    #[test]
    fn a_class_without_a_record_is_named_unless_gaps_are_allowed() {
        let error = number(Path::new("f"), &[1, 3, 4], Gaps::Refused).unwrap_err();
        assert!(matches!(error, Error::ClassWithoutRecord { class: 2, .. }), "{error}");
        assert_eq!(number(Path::new("f"), &[1, 3, 4], Gaps::Allowed).unwrap().labels, [0, 1, 2]);
    }
    #[test]
    fn one_class_or_none_is_refused() {
        assert!(matches!(
            number(Path::new("f"), &[7, 7], Gaps::Refused),
            Err(Error::TooFewClasses { have: 1, .. })
        ));
        assert!(matches!(number(Path::new("f"), &[], Gaps::Refused), Err(Error::NoRecords { .. })));
    }
    #[test]
    fn labels_are_whole_numbers_from_zero() {
        for (text, number) in [("13", 13), ("\"13\"", 13), ("13.0", 13), ("4294967295", u32::MAX)] {
            assert_eq!(parse(text.as_bytes()), Ok(number));
        }
        for text in ["-1", "1.5", "4294967296", "+1", "1e2", "nan", "x"] {
            assert_eq!(parse(text.as_bytes()), Err(FieldProblem::NotAClassNumber), "{text}");
        }
        assert_eq!(parse(b"\"\""), Err(FieldProblem::Empty));
        for number in [-1.0, 0.5, f64::NAN, f64::INFINITY, 4_294_967_296.0] {
            assert_eq!(from_number(number), Err(FieldProblem::NotAClassNumber), "{number}");
        }
        assert_eq!(from_number(29.0), Ok(29));
        assert_eq!(from_number(-0.0), Ok(0));
    }
    #[test]
    fn one_hot_rows_hold_exactly_one_1() {
        assert_eq!(from_one_hot(&[0.0, 0.0, 1.0]), Ok(2));
        for row in [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [f64::NAN, 1.0], [2.0, 0.0]] {
            assert_eq!(from_one_hot(&row), Err(FieldProblem::NotOneHot), "{row:?}");
        }
    }
}
