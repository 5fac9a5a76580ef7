//! Scores joined with the truth by record.
use crate::{Error, Scores};
use dosimeter_data::RecordId;
use serde::{Deserialize, Serialize};

/// Scores with the truth beside them, in candidate order. Every score is finite and every record appears once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Record, score, membership.
    pub rows: Vec<(RecordId, f64, bool)>,
    /// Candidates the attack could not judge: they are in no statistic, but counted in every report.
    pub not_assessable: Vec<RecordId>,
}
impl Evidence {
    /// Joins what an attack said with who was trained on. `member` gives `None` for records that were no candidates.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::UnknownRecord`] and [`Error::DuplicateRecord`], each naming the record.
    pub fn join(scores: &Scores, member: impl Fn(RecordId) -> Option<bool>) -> Result<Self, Error> {
        let mut rows = Vec::with_capacity(scores.judged.len());
        for &(record, score) in &scores.judged {
            if !score.is_finite() {
                return Err(Error::NotFinite { record, score });
            }
            rows.push((record, score, member(record).ok_or(Error::UnknownRecord { record })?));
        }
        for &record in &scores.not_assessable {
            member(record).ok_or(Error::UnknownRecord { record })?;
        }
        let mut ids: Vec<RecordId> =
            rows.iter().map(|row| row.0).chain(scores.not_assessable.iter().copied()).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::DuplicateRecord { record: pair[0] });
        }
        Ok(Self { rows, not_assessable: scores.not_assessable.clone() })
    }

    /// Scores of unknown origin: entry `i` of both arrays is record `i`.
    ///
    /// # Errors
    /// [`Error::Length`] if the arrays differ in length, [`Error::NotFinite`] naming the entry.
    pub fn from_arrays(scores: &[f64], member: &[bool]) -> Result<Self, Error> {
        if scores.len() != member.len() {
            return Err(Error::Length {
                what: "membership",
                needed: scores.len(),
                got: member.len(),
            });
        }
        let mut rows = Vec::with_capacity(scores.len());
        for (entry, (&score, &member)) in scores.iter().zip(member).enumerate() {
            let record = RecordId(
                u32::try_from(entry).map_err(|_| Error::TooManyRecords { got: scores.len() })?,
            );
            if !score.is_finite() {
                return Err(Error::NotFinite { record, score });
            }
            rows.push((record, score, member));
        }
        Ok(Self { rows, not_assessable: Vec::new() })
    }

    /// Judged members and judged non-members.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let members = self.rows.iter().filter(|row| row.2).count();
        (members as u64, (self.rows.len() - members) as u64)
    }
}
