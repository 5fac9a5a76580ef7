//! Statistics of membership scores. Knows no models and no attacks: any scores may be audited, a stranger's too.
pub mod evidence;
pub mod scores;

pub use evidence::Evidence;
pub use scores::Scores;
