//! The fast generator: sixteen xoshiro128++ streams side by side.
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

pub(super) const LANES: usize = 16;

/// Sixteen independent xoshiro128++ generators (Blackman & Vigna 2021, arXiv:1805.01407), one word of each in turn.
/// The sixteen states are 256 bytes of ChaCha20 under the seed. Not cryptographic.
pub(super) struct FastLanes {
    state: [[u32; LANES]; 4],
}
impl FastLanes {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        let mut expand = ChaCha20Rng::from_seed(seed);
        let mut state = [[0; LANES]; 4];
        for row in &mut state {
            for word in row.iter_mut() {
                *word = expand.next_u32();
            }
        }
        // The all-zero state is a fixed point; chance 2^-128 a lane, but it costs nothing to exclude.
        state[0].iter_mut().for_each(|w| *w |= 1);
        Self { state }
    }
    pub(super) fn fill(&mut self, words: &mut [u32]) {
        let state = &mut self.state;
        // `let` moves the borrow: see `float::add_blocks`.
        pulp::Arch::new().dispatch(
            #[inline(always)]
            move || {
                let state = state;
                fill(state, words);
            },
        );
    }
}

#[inline(always)]
fn step(s: &mut [[u32; LANES]; 4], out: &mut [u32; LANES]) {
    for i in 0..LANES {
        let (s0, s1, s2, s3) = (s[0][i], s[1][i], s[2][i], s[3][i]);
        out[i] = s0.wrapping_add(s3).rotate_left(7).wrapping_add(s0);
        let (s2, s3) = (s2 ^ s0, s3 ^ s1);
        s[1][i] = s1 ^ s2;
        s[0][i] = s0 ^ s3;
        s[2][i] = s2 ^ (s1 << 9);
        s[3][i] = s3.rotate_left(11);
    }
}

#[inline(always)]
fn fill(state: &mut [[u32; LANES]; 4], words: &mut [u32]) {
    // A local copy lets the compiler keep the state in registers.
    let mut local = *state;
    let (blocks, rest) = words.as_chunks_mut::<LANES>();
    for block in blocks {
        step(&mut local, block);
    }
    if !rest.is_empty() {
        let mut last = [0; LANES];
        step(&mut local, &mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
    *state = local;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_is_xoshiro128_plus_plus() {
        // State 1, 2, 3, 4: the first outputs of the authors' C code (also in rand_xoshiro's tests).
        let mut lanes = FastLanes { state: [[1; LANES], [2; LANES], [3; LANES], [4; LANES]] };
        let expected = [
            641,
            1_573_767,
            3_222_811_527,
            3_517_856_514,
            836_907_274,
            4_247_214_768,
            3_867_114_732,
            1_355_841_295,
            495_546_011,
            621_204_420_u32,
        ];
        // The last row is not asked for as a whole.
        let mut words = [0; 9 * LANES + 5];
        lanes.fill(&mut words);
        for (row, expected) in words.chunks(LANES).zip(expected) {
            assert!(row.iter().all(|&w| w == expected), "{row:?} is not {expected}");
        }
    }
}
