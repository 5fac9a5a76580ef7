//! Tails of the normal distribution.
