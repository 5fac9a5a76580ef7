//! Numbers straight from the bytes of a text: a fast way for those that most tables hold, and a general one.

/// The finite number that `bytes` begin with and how many of them are its; `None` says only that it takes a closer look.
#[inline]
pub(super) fn number(bytes: &[u8]) -> Option<(f64, usize)> {
    decimal(bytes).or_else(|| general(bytes))
}

#[inline(never)]
fn general(bytes: &[u8]) -> Option<(f64, usize)> {
    let first = bytes.strip_prefix(b"-").unwrap_or(bytes).first();
    first.filter(|b| b.is_ascii_digit())?;
    let parsed: Option<(f64, usize)> = fast_float2::parse_partial(bytes).ok();
    parsed.filter(|(number, _)| number.is_finite())
}

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// What as many digits multiply those before them by.
const SHIFTS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A number of at most 18 digits and 2^53, without an exponent: a whole number and a power of ten, both exact, so that their quotient is
/// rounded once, as it should be.
#[inline]
fn decimal(bytes: &[u8]) -> Option<(f64, usize)> {
    // A sign comes as if thrown by a coin: nothing may branch on it, or half of the branches are foreseen wrongly.
    let negative = usize::from(bytes.first() == Some(&b'-'));
    let (mut mantissa, mut end) = (0, negative);
    // Before the point there are few digits, behind it more.
    while let Some(digit) = bytes.get(end).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        mantissa = u64::wrapping_mul(mantissa, 10).wrapping_add(u64::from(digit));
        end += 1;
    }
    let (mut digits, mut fraction) = (end - negative, 0);
    if bytes.get(end) == Some(&b'.') {
        let point = end + 1;
        end = take_digits(bytes, point, &mut mantissa);
        fraction = end - point;
        digits += fraction;
    }
    // 18 digits cannot have wrapped.
    if digits == 0 || digits > 18 || mantissa > 1 << 53 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        return None;
    }
    let value = mantissa.cast_signed() as f64 / POWERS.get(fraction)?;
    Some((f64::from_bits(value.to_bits() | (negative as u64) << 63), end))
}

/// Puts the digits from `at` on behind those of `mantissa`, modulo 2^64, and says where they end.
#[inline]
fn take_digits(bytes: &[u8], mut at: usize, mantissa: &mut u64) -> usize {
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let (count, value) = leading_digits(u64::from_le_bytes(*word));
        *mantissa = mantissa.wrapping_mul(SHIFTS[count]).wrapping_add(value);
        at += count;
        if count < 8 {
            return at;
        }
    }
    while let Some(digit) = bytes.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    at
}

/// How many digits eight bytes begin with, the first byte being the lowest, and the number they write: all eight at once.
#[inline]
const fn leading_digits(word: u64) -> (usize, u64) {
    // 0 to 9 for a digit; more, so that its highest bit is set once 0x76 is added, for others. What an addition carries over goes to bytes
    // behind one that is no digit.
    let values = word ^ 0x3030_3030_3030_3030;
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    let count = others.trailing_zeros() / 8;
    // Digits move to the end, with zeros before them.
    let values = if count == 0 { 0 } else { values << (64 - 8 * count) };
    // Neighbours are joined: to pairs, then pairs to fours and fours to eights in one multiplication each.
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let first = (pairs & 0xff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let second = ((pairs >> 16) & 0xff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (count as usize, first.wrapping_add(second) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(
            text in r"[-+]?[0-9]{0,22}(\.[0-9]{0,24})?([eE][-+]?[0-9]{1,3})?|-?(nan|inf)", end in r"[,\n; x]?.{0,9}"
        ) {
            let all = format!("{text}{end}");
            if let Some((value, length)) = number(all.as_bytes()) {
                let expected: f64 = all[..length].parse().unwrap();
                prop_assert_eq!(value.to_bits(), expected.to_bits(), "{} of {}", length, all);
            } else if let Ok(expected) = text.parse::<f64>() {
                // What begins with a digit is left to a closer look only if it is not finite.
                let begins = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
                prop_assert!(!expected.is_finite() || !begins || !end.is_empty(), "{}", text);
            }
        }
        #[test]
        fn digits_are_taken_up_to_the_first_other_byte(bytes in any::<[u8; 8]>(), digits in 0..=8_usize) {
            let mut bytes = bytes;
            bytes[..digits].iter_mut().for_each(|b| *b = b'0' + *b % 10);
            let expected = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
            let text = std::str::from_utf8(&bytes[..expected]).unwrap();
            let value = if text.is_empty() { 0 } else { text.parse().unwrap() };
            prop_assert_eq!(leading_digits(u64::from_le_bytes(bytes)), (expected, value));
        }
    }
    #[test]
    fn numbers_by_hand() {
        for (text, expected, length) in [
            ("0.125,", 0.125, 5),
            ("-12\n", -12.0, 3),
            ("5.", 5.0, 2),
            ("-0.0", -0.0, 4),
            (".5", 0.5, 2),
            ("1e3,", 1000.0, 3),
            ("0.1234567890123456789,", 0.123_456_789_012_345_68, 21),
        ] {
            let (value, end) = number(text.as_bytes()).unwrap();
            assert_eq!((value.to_bits(), end), (f64::to_bits(expected), length), "{text}");
        }
        for text in ["", "-", ".", "-.", ",", "nan", "inf", "1e999", "x"] {
            assert!(number(text.as_bytes()).is_none(), "{text}");
        }
    }
}
