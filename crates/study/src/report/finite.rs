//! Refuses NaN and infinity anywhere in a value that is about to be written, and names the field.
//!
//! `serde_json` writes a non-finite float as `null` without a word, which then reads back as "absent".
//! This walks the value with a serializer that writes nothing, so a field added later is covered as well.
use serde::ser::{self, Serialize, Serializer};

/// A NaN or infinity where a number must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} must be a finite number, got {got}")]
pub struct NotFinite {
    /// Where, for example `arms[2].repeats[0].attacks[1].auc.value`.
    pub path: String,
    /// `NaN`, `inf` or `-inf`; or what a serializer said.
    pub got: String,
}
impl ser::Error for NotFinite {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self { path: String::new(), got: message.to_string() }
    }
}

/// Walks `value`.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), NotFinite> {
    value.serialize(Walk { path: &mut String::new() })
}

/// Position in the value. Compound states borrow the same path and cut it back after each child.
struct Walk<'a> {
    path: &'a mut String,
}
/// Inside a sequence, map or struct.
struct Inside<'a> {
    path: &'a mut String,
    index: usize,
}
impl<'a> Inside<'a> {
    fn at<T: Serialize + ?Sized>(&mut self, step: &str, value: &T) -> Result<(), NotFinite> {
        let length = self.path.len();
        if !step.starts_with('[') && length > 0 {
            self.path.push('.');
        }
        self.path.push_str(step);
        value.serialize(Walk { path: self.path })?;
        self.path.truncate(length);
        Ok(())
    }
    fn next<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
        let step = format!("[{}]", self.index);
        self.index += 1;
        self.at(&step, value)
    }
    const fn new(path: &'a mut String) -> Self {
        Self { path, index: 0 }
    }
}

macro_rules! ignore {
    ($($method:ident: $type:ty),*) => { $(
        fn $method(self, _: $type) -> Result<(), NotFinite> { Ok(()) }
    )* };
}
impl<'a> Serializer for Walk<'a> {
    type Ok = ();
    type Error = NotFinite;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Inside<'a>;
    type SerializeTupleVariant = Inside<'a>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Inside<'a>;
    ignore!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_char: char,
        serialize_str: &str, serialize_bytes: &[u8], serialize_unit_struct: &'static str);
    fn serialize_f32(self, value: f32) -> Result<(), NotFinite> {
        self.serialize_f64(f64::from(value))
    }
    fn serialize_f64(self, value: f64) -> Result<(), NotFinite> {
        if value.is_finite() {
            return Ok(());
        }
        Err(NotFinite { path: self.path.clone(), got: value.to_string() })
    }
    fn serialize_none(self) -> Result<(), NotFinite> {
        Ok(())
    }
    fn serialize_unit(self) -> Result<(), NotFinite> {
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NotFinite> {
        value.serialize(self)
    }
    fn serialize_unit_variant(self, _: &str, _: u32, _: &str) -> Result<(), NotFinite> {
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &str,
        value: &T,
    ) -> Result<(), NotFinite> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &str,
        _: u32,
        variant: &str,
        value: &T,
    ) -> Result<(), NotFinite> {
        Inside::new(self.path).at(variant, value)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>, NotFinite> {
        Ok(Inside::new(self.path))
    }
    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>, NotFinite> {
        Ok(Inside::new(self.path))
    }
    fn serialize_tuple_struct(self, _: &str, _: usize) -> Result<Inside<'a>, NotFinite> {
        Ok(Inside::new(self.path))
    }
    fn serialize_tuple_variant(
        self,
        _: &str,
        _: u32,
        _: &str,
        _: usize,
    ) -> Result<Inside<'a>, NotFinite> {
        Ok(Inside::new(self.path))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>, NotFinite> {
        Ok(Inside::new(self.path))
    }
    fn serialize_struct(self, _: &str, _: usize) -> Result<Inside<'a>, NotFinite> {
        Ok(Inside::new(self.path))
    }
    fn serialize_struct_variant(
        self,
        _: &str,
        _: u32,
        _: &str,
        _: usize,
    ) -> Result<Inside<'a>, NotFinite> {
        Ok(Inside::new(self.path))
    }
}

macro_rules! listed {
    ($($trait:ident: $method:ident),*) => { $(
        impl ser::$trait for Inside<'_> {
            type Ok = ();
            type Error = NotFinite;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
                self.next(value)
            }
            fn end(self) -> Result<(), NotFinite> { Ok(()) }
        }
    )* };
}
listed!(SerializeSeq: serialize_element, SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field, SerializeTupleVariant: serialize_field);

macro_rules! named {
    ($($trait:ident),*) => { $(
        impl ser::$trait for Inside<'_> {
            type Ok = ();
            type Error = NotFinite;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), NotFinite> {
                self.at(key, value)
            }
            fn end(self) -> Result<(), NotFinite> { Ok(()) }
        }
    )* };
}
named!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = NotFinite;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), NotFinite> {
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
        self.next(value)
    }
    fn end(self) -> Result<(), NotFinite> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize)]
    enum Shape {
        Named { deep: Vec<Option<f64>> },
        Pair(f64, f32),
        Newtype(f64),
    }
    #[derive(serde::Serialize)]
    struct Outer {
        good: f64,
        shapes: Vec<Shape>,
    }
    fn path_of(shapes: Vec<Shape>) -> Option<(String, String)> {
        check(&Outer { good: 1.0, shapes }).err().map(|e| (e.path, e.got))
    }

    #[test]
    fn every_place_a_float_can_hide_in_is_named() {
        let finite = || Shape::Named { deep: vec![Some(0.0), None] };
        let nan = vec![finite(), Shape::Named { deep: vec![None, Some(f64::NAN)] }];
        assert_eq!(path_of(nan), Some(("shapes[1].deep[1]".into(), "NaN".into())));
        let infinite = vec![Shape::Pair(0.0, f32::INFINITY)];
        assert_eq!(path_of(infinite), Some(("shapes[0][1]".into(), "inf".into())));
        let negative = vec![Shape::Newtype(f64::NEG_INFINITY)];
        assert_eq!(path_of(negative), Some(("shapes[0].Newtype".into(), "-inf".into())));
        assert_eq!(path_of(vec![finite(), Shape::Pair(1.0, 2.0), Shape::Newtype(3.0)]), None);
    }
}
