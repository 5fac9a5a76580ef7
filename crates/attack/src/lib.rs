//! Membership inference attacks: what a model gives away, as scores.
