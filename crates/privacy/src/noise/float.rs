//! Fast floating-point samplers, for experiments. Their low bits may give the value away: not for real releases.
//!
//! The loops are plain arithmetic over blocks, without branches, so the compiler uses the vector unit that
//! [`pulp`] finds at run time. Every fused multiply-add is a real one, so the same seed gives the same noise on every machine.
use crate::NoiseRng;

/// Samples made at a time: noise added to a vector in parts of whole blocks is the noise added to the whole.
pub const BLOCK: usize = 1024;
const HALF: usize = BLOCK / 2;

/// Natural logarithm of `(word + 1/2) / 2^32`, relative error below 3e-7: always negative.
#[inline(always)]
fn ln_uniform(word: u32) -> f32 {
    // Two 16-bit halves convert exactly and add with one rounding (there is no vector conversion of unsigned words).
    let low = (word & 0xFFFF) as i32 as f32 + 0.5;
    let value = ((word >> 16) as i32 as f32).mul_add(65_536.0, low);
    let bits = value.to_bits();
    // Split value = m 2^e with m in [sqrt(1/2), sqrt(2)).
    let shifted = bits.wrapping_sub(0x3F35_04F3);
    let exponent = (shifted as i32 >> 23) as f32;
    let mantissa = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(0x3F35_04F3));
    let f = mantissa - 1.0;
    // Polynomial of Cephes logf (Moshier 1992).
    let z = f * f;
    let mut p = 7.037_683_6e-2_f32;
    p = p.mul_add(f, -1.151_461e-1);
    p = p.mul_add(f, 1.167_699_84e-1);
    p = p.mul_add(f, -1.242_014_1e-1);
    p = p.mul_add(f, 1.424_932_3e-1);
    p = p.mul_add(f, -1.666_805_8e-1);
    p = p.mul_add(f, 2.000_071_5e-1);
    p = p.mul_add(f, -2.499_999_4e-1);
    p = p.mul_add(f, 3.333_333e-1);
    let exponent = exponent - 32.0;
    let tail = (p * f).mul_add(z, z.mul_add(-0.5, exponent * -2.121_944_4e-4));
    exponent.mul_add(0.693_359_4, f + tail)
}

/// Cosine and sine of a full turn times `word / 2^32`, absolute error below 2e-7.
#[inline(always)]
fn turn(word: u32) -> (f32, f32) {
    // Quadrant from the top two bits; the rest is an angle in [-1/8, 1/8) of a turn around the middle of the quadrant.
    let angle = ((word << 2) as i32) as f32 * (std::f32::consts::FRAC_PI_4 / (1_u32 << 31) as f32);
    let z = angle * angle;
    // Polynomials of Cephes sinf and cosf on [-pi/4, pi/4].
    let sine = z.mul_add(z.mul_add(-1.951_529_6e-4, 8.332_161e-3), -1.666_665_5e-1);
    let sine = (sine * z).mul_add(angle, angle);
    let cosine = z.mul_add(z.mul_add(2.443_315_7e-5, -1.388_731_6e-3), 4.166_664_6e-2);
    let cosine = (cosine * z).mul_add(z, z.mul_add(-0.5, 1.0));
    let odd = (word >> 30) & 1;
    let negative = word & 0x8000_0000;
    // A quarter turn swaps the two and changes one sign; half a turn changes both.
    let mask = odd.wrapping_neg();
    let (c, s) = (cosine.to_bits(), sine.to_bits());
    let first = ((c & !mask) | (s & mask)) ^ negative ^ (odd << 31);
    let second = ((s & !mask) | (c & mask)) ^ negative;
    (f32::from_bits(first), f32::from_bits(second))
}

/// A law, by its standard samples.
trait Block {
    /// Samples from words.
    fn fill(words: &[u32; BLOCK], out: &mut [f32; BLOCK]);
}

/// Two independent standard Gaussians for each pair of words (Box & Muller 1958). The tail ends at 6.7.
struct GaussianBlock;
impl Block for GaussianBlock {
    #[inline(always)]
    fn fill(words: &[u32; BLOCK], out: &mut [f32; BLOCK]) {
        let (radius_words, angle_words) = words.split_at(HALF);
        let (left, right) = out.split_at_mut(HALF);
        for i in 0..HALF {
            let radius = (-2.0 * ln_uniform(radius_words[i])).sqrt();
            let (cosine, sine) = turn(angle_words[i]);
            left[i] = radius * cosine;
            right[i] = radius * sine;
        }
    }
}

/// Standard Laplace samples: an exponential with a random sign.
struct LaplaceBlock;
impl Block for LaplaceBlock {
    #[inline(always)]
    fn fill(words: &[u32; BLOCK], out: &mut [f32; BLOCK]) {
        for (value, &word) in out.iter_mut().zip(words) {
            // 31 bits for the size, the lowest for the sign.
            let size = -ln_uniform(word | 1);
            *value = f32::from_bits(size.to_bits() ^ (word << 31));
        }
    }
}

/// `values[i] += factor * noise[i]`, the noise made from `words`.
#[inline(always)]
fn add_block<B: Block>(
    values: &mut [f32],
    factor: f32,
    words: &[u32; BLOCK],
    noise: &mut [f32; BLOCK],
) {
    B::fill(words, noise);
    for (value, sample) in values.iter_mut().zip(noise.iter()) {
        *value = sample.mul_add(factor, *value);
    }
}

#[inline(always)]
fn add_blocks<B: Block>(values: &mut [f32], factor: f32, rng: &mut NoiseRng) {
    let mut words = [0_u32; BLOCK];
    let mut noise = [0.0_f32; BLOCK];
    let arch = pulp::Arch::new();
    for part in values.chunks_mut(BLOCK) {
        rng.fill_words(&mut words);
        let (words, noise) = (&words, &mut noise);
        // The closure must give its captures away (hence the `let`): one that could be called twice is called through
        // a shim, which is compiled without the vector instructions.
        arch.dispatch(
            #[inline(always)]
            move || {
                let part = part;
                add_block::<B>(part, factor, words, noise);
            },
        );
    }
}

/// Adds independent `N(0, standard_deviation^2)` noise to each of `values`.
pub fn add_gaussian(values: &mut [f32], standard_deviation: f32, rng: &mut NoiseRng) {
    add_blocks::<GaussianBlock>(values, standard_deviation, rng);
}

/// Adds independent Laplace noise of scale `scale` to each of `values`.
pub fn add_laplace(values: &mut [f32], scale: f32, rng: &mut NoiseRng) {
    add_blocks::<LaplaceBlock>(values, scale, rng);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_agrees_with_the_libm_one() {
        for word in (0..u32::MAX).step_by(65_521).chain([0, 1, 2, u32::MAX, u32::MAX - 1]) {
            let exact = ((f64::from(word) + 0.5) / 4_294_967_296.0).ln();
            let got = f64::from(ln_uniform(word));
            assert!(
                (got - exact).abs() <= 3e-7 * exact.abs().max(0.4),
                "{word}: {got} is not {exact}"
            );
            assert!(got <= 0.0);
        }
    }

    #[test]
    fn the_turn_agrees_with_the_libm_functions_up_to_an_eighth_of_a_turn() {
        for word in (0..u32::MAX).step_by(65_521) {
            // The zero angle lies in the middle of a quadrant: an offset that no sample can notice.
            let (quadrant, rest) =
                (f64::from(word >> 30), f64::from((word << 2) as i32) / f64::from(1_u32 << 31));
            let angle = std::f64::consts::FRAC_PI_2 * (quadrant + rest / 2.0);
            let (cosine, sine) = turn(word);
            assert!((f64::from(cosine) - angle.cos()).abs() < 2e-7, "{word}");
            assert!((f64::from(sine) - angle.sin()).abs() < 2e-7, "{word}");
        }
    }
}
