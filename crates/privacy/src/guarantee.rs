//! Checked numbers of a privacy guarantee.
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number outside the range its meaning allows.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{what} must be {needed}, got {got:?}")]
pub struct OutOfRange {
    /// The quantity.
    pub what: &'static str,
    /// The range it must lie in.
    pub needed: &'static str,
    /// What was given.
    pub got: f64,
}

macro_rules! checked {
    ($(#[$doc:meta])* $name:ident, $what:literal, $needed:literal, $ok:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);
        impl $name {
            /// Checks the range.
            ///
            /// # Errors
            /// [`OutOfRange`] outside the documented range, and for NaN.
            pub fn new(value: f64) -> Result<Self, OutOfRange> {
                let ok: fn(f64) -> bool = $ok;
                if ok(value) { Ok(Self(value)) } else { Err(OutOfRange { what: $what, needed: $needed, got: value }) }
            }
            /// The number.
            #[must_use]
            pub const fn get(self) -> f64 { self.0 }
        }
        impl TryFrom<f64> for $name {
            type Error = OutOfRange;
            fn try_from(value: f64) -> Result<Self, OutOfRange> { Self::new(value) }
        }
        impl From<$name> for f64 {
            fn from(value: $name) -> Self { value.0 }
        }
    };
}
checked!(/// Failure probability of a guarantee, in `[0, 1]`.
    Delta, "delta", "in [0, 1]", |x| (0.0..=1.0).contains(&x));
checked!(/// Noise standard deviation over clipping norm, finite and above 0. No noise is [`crate::Event::NonPrivate`].
    NoiseMultiplier, "noise multiplier", "finite and above 0", |x| x > 0.0 && x.is_finite());
checked!(/// Poisson inclusion probability, in `(0, 1]`.
    SamplingRate, "sampling rate", "in (0, 1]", |x| x > 0.0 && x <= 1.0);
checked!(/// Laplace noise scale over L1 sensitivity, finite and above 0.
    LaplaceScale, "Laplace scale", "finite and above 0", |x| x > 0.0 && x.is_finite());
impl Delta {
    /// Certain failure: every mechanism is (0, 1)-DP.
    pub const ONE: Self = Self(1.0);
}

/// Privacy loss bound in nats: at least 0, or [`Epsilon::UNBOUNDED`] (a tagged value, never written as a float infinity).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Epsilon(f64);
impl Epsilon {
    /// Nothing is guaranteed.
    pub const UNBOUNDED: Self = Self(f64::INFINITY);
    /// Checks that `value` is finite and at least 0.
    ///
    /// # Errors
    /// [`OutOfRange`] for anything else, NaN and infinity included.
    pub fn new(value: f64) -> Result<Self, OutOfRange> {
        if value >= 0.0 && value.is_finite() {
            Ok(Self(value))
        } else {
            Err(OutOfRange { what: "epsilon", needed: "finite and at least 0", got: value })
        }
    }
    /// The number in nats; `f64::INFINITY` when unbounded.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
    /// The smallest checked epsilon at or above `value`: 0 for a negative number, unbounded for NaN or infinity.
    pub(crate) fn at_least(value: f64) -> Self {
        if value.is_finite() {
            Self(value.max(0.0))
        } else if value == f64::NEG_INFINITY {
            Self(0.0)
        } else {
            Self::UNBOUNDED
        }
    }
    /// Whether nothing is guaranteed.
    #[must_use]
    pub const fn is_unbounded(self) -> bool {
        self.0.is_infinite()
    }
}
impl Serialize for Epsilon {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_unbounded() {
            serializer.serialize_str("unbounded")
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}
impl<'de> Deserialize<'de> for Epsilon {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Word(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(x) => Self::new(x).map_err(serde::de::Error::custom),
            Form::Word(w) if w == "unbounded" => Ok(Self::UNBOUNDED),
            Form::Word(w) => Err(serde::de::Error::custom(format!(
                "epsilon must be a number or \"unbounded\", got \"{w}\""
            ))),
        }
    }
}

/// Which pairs of data sets a guarantee holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// One unit added or removed.
    AddRemove,
    /// One unit replaced by another (a clipped sum has sensitivity `2 * clipping_norm`).
    ReplaceOne,
    /// Any two inputs of one local randomizer. For additive noise on a vector of norm at most `C` this is
    /// [`Relation::ReplaceOne`]: two inputs differ by up to `2 C`.
    Local,
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddRemove => "add-remove",
            Self::ReplaceOne => "replace-one",
            Self::Local => "local",
        })
    }
}

/// What one privacy unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// One record, label included.
    Record,
    /// The feature vector of one record; its label is public.
    FeatureVector,
    /// So many pixels of one image, each with all its channels: two images are neighbours if at most so many pixels differ. Says
    /// nothing of images that differ in more.
    Pixels(u64),
    /// One edge of one graph: two graphs are neighbours if they have the same nodes and differ in who is connected for one pair of
    /// them. Says nothing of graphs that differ in more.
    Edge,
}
