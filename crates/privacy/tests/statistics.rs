//! Every sampler and mechanism against the law it claims.
//!
//! A correct implementation fails one test with probability at most [`FALSE_FAILURE`] under a fresh seed. Two checks are
//! used, both valid for every number of draws: the DKW inequality for whole distribution functions (Massart 1990; also
//! holds for discrete laws) and Chernoff's bound `P(n KL(share || p) >= x) <= 2 e^-x` for single events, which stays sharp
//! in the tails. An error larger than twice the margin is found but for the same probability.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::suboptimal_flops,
    clippy::float_cmp,
    reason = "a test fails by panicking, and compares with plain arithmetic"
)]
use dosimeter_privacy::{
    Bounded, BoundedL1, Epsilon, Event, Generator, LaplaceScale, Ledger, NoiseMultiplier, NoiseRng,
    NoiseSource, Sampler, SamplingRate, Unit,
    mechanisms::{BinaryRandomizedResponse, Gaussian, Laplace, RandomizedResponse},
    noise::{exact, float, poisson_sample, response},
};
use dosimeter_testing::{FALSE_FAILURE, hoeffding_margin};
use rand_core::Rng;

const GENERATORS: [Generator; 3] =
    [Generator::OperatingSystem, Generator::ReplayableChaCha, Generator::ReplayableFast];

fn rng(generator: Generator, sampler: Sampler, seed: u8) -> NoiseRng {
    // The operating system's seed is a fresh one each time: that is what FALSE_FAILURE is for.
    NoiseRng::with_source(NoiseSource { generator, sampler }, [seed; 32]).unwrap()
}

/// Whether `count` of `draws` fits probability `p`, as one of `checks`.
fn fits(count: u32, draws: u32, p: f64, checks: f64) -> bool {
    let (n, share) = (f64::from(draws), f64::from(count) / f64::from(draws));
    let part = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a * (a / b).ln() };
    n * (part(share, p) + part(1.0 - share, 1.0 - p)) <= (2.0 * checks / FALSE_FAILURE).ln()
}

#[track_caller]
fn assert_fits(what: &str, count: u32, draws: u32, p: f64, checks: f64) {
    assert!(
        fits(count, draws, p, checks),
        "{what}: {count} of {draws} = {} is not {p}",
        f64::from(count) / f64::from(draws)
    );
}

/// Largest distance between the distribution of `samples` and `cdf`, over all thresholds.
fn distance(samples: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let mut largest = 0.0_f64;
    for (i, &x) in samples.iter().enumerate() {
        let f = cdf(x);
        largest = largest.max(f - i as f64 / n).max((i + 1) as f64 / n - f);
    }
    largest
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / 2.0_f64.sqrt())
}
fn laplace_cdf(x: f64) -> f64 {
    if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() }
}

/// `P(x)` for `-reach..=reach` from unnormalised weights.
fn normalised(reach: i64, weight: impl Fn(f64) -> f64) -> Vec<f64> {
    let weights: Vec<f64> = (-reach..=reach).map(|x| weight(x as f64)).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

/// Every value with its own frequency, every upper and lower tail, and the distribution function as a whole.
fn check_integers(name: &str, draws: u32, pmf: &[f64], mut sample: impl FnMut() -> i64) {
    let reach = pmf.len() as i64 / 2;
    let mut counts = vec![0_u32; pmf.len()];
    for _ in 0..draws {
        let x = sample();
        assert!(x.abs() <= reach, "{name}: {x} has probability below 1e-30");
        counts[(x + reach) as usize] += 1;
    }
    let checks = 3.0 * pmf.len() as f64;
    let (mut below, mut cumulated) = (0, 0.0);
    for (i, (&count, &p)) in counts.iter().zip(pmf).enumerate() {
        assert_fits(&format!("{name} = {}", i as i64 - reach), count, draws, p, checks);
        below += count;
        cumulated += p;
        let upper: f64 = pmf[i + 1..].iter().sum();
        let margin = hoeffding_margin(draws);
        assert!((f64::from(below) / f64::from(draws) - cumulated).abs() <= margin, "{name} at {i}");
        if upper > 0.0 {
            assert_fits(&format!("{name} above {i}"), draws - below, draws, upper, checks);
        }
        assert_fits(&format!("{name} up to {i}"), below, draws, cumulated.min(1.0), checks);
    }
}

#[test]
fn the_discrete_gaussian_has_its_exact_probabilities_in_body_and_tails() {
    // Power: a value of probability p off by 14 / sqrt(200000 p) of itself is found; 10 % at p = 0.1.
    for (generator, s) in GENERATORS.into_iter().cycle().zip([1_u32, 2, 3, 7, 40]) {
        let mut rng = rng(generator, Sampler::Exact, s as u8);
        let deviation = f64::from(s);
        let pmf = normalised(12 * i64::from(s), |x| (-x * x / (2.0 * deviation * deviation)).exp());
        check_integers(&format!("discrete gaussian {s}"), 200_000, &pmf, || {
            exact::discrete_gaussian(&mut rng, s)
        });
    }
}

#[test]
fn the_discrete_laplace_has_its_exact_probabilities_in_body_and_tails() {
    for (generator, s) in GENERATORS.into_iter().cycle().zip([1_u32, 2, 5, 30]) {
        let mut rng = rng(generator, Sampler::Exact, s as u8);
        let pmf = normalised(70 * i64::from(s), |x| (-x.abs() / f64::from(s)).exp());
        check_integers(&format!("discrete laplace {s}"), 200_000, &pmf, || {
            exact::discrete_laplace(&mut rng, s)
        });
    }
}

#[test]
fn the_discrete_laws_on_fine_grids_are_the_continuous_ones() {
    let mut rng = rng(Generator::ReplayableChaCha, Sampler::Exact, 3);
    let (draws, s) = (200_000, 1_u32 << 24);
    let scale = |x: i64| x as f64 / f64::from(s);
    let mut gaussian: Vec<f64> =
        (0..draws).map(|_| scale(exact::discrete_gaussian(&mut rng, s))).collect();
    let mut laplace: Vec<f64> =
        (0..draws).map(|_| scale(exact::discrete_laplace(&mut rng, s))).collect();
    assert!(distance(&mut gaussian, normal_cdf) <= hoeffding_margin(draws));
    assert!(distance(&mut laplace, laplace_cdf) <= hoeffding_margin(draws));
}

/// Thresholds beyond which the share of float samples is checked on its own.
fn check_tails(name: &str, samples: &[f64], cdf: impl Fn(f64) -> f64) {
    let draws = samples.len() as u32;
    for k in [0.01, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0] {
        let above = samples.iter().filter(|x| **x > k).count() as u32;
        let below = samples.iter().filter(|x| **x < -k).count() as u32;
        assert_fits(&format!("{name} above {k}"), above, draws, cdf(-k), 14.0);
        assert_fits(&format!("{name} below -{k}"), below, draws, cdf(-k), 14.0);
    }
}

#[test]
fn float_gaussian_noise_is_normal_at_every_threshold_and_in_the_tails() {
    // Power: a standard deviation off by 2.7 % moves the distribution function by twice the margin, 0.0065.
    for generator in GENERATORS {
        let mut values = vec![0.0_f32; 1_000_000];
        float::add_gaussian(&mut values, 1.0, &mut rng(generator, Sampler::Float, 5));
        let mut samples: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        check_tails("gaussian", &samples, normal_cdf);
        let far = distance(&mut samples, normal_cdf);
        assert!(far <= hoeffding_margin(1_000_000), "{generator:?}: {far}");
    }
}

#[test]
fn float_laplace_noise_is_laplace_at_every_threshold_and_in_the_tails() {
    for generator in GENERATORS {
        let mut values = vec![0.0_f32; 1_000_000];
        float::add_laplace(&mut values, 1.0, &mut rng(generator, Sampler::Float, 6));
        let mut samples: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        check_tails("laplace", &samples, laplace_cdf);
        let far = distance(&mut samples, laplace_cdf);
        assert!(far <= hoeffding_margin(1_000_000), "{generator:?}: {far}");
    }
}

#[test]
fn the_checks_see_noise_that_is_five_percent_too_small() {
    // The tests above would be worthless if they let this pass.
    let mut values = vec![0.0_f32; 1_000_000];
    float::add_gaussian(&mut values, 0.95, &mut rng(Generator::ReplayableFast, Sampler::Float, 7));
    let mut samples: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
    let above = samples.iter().filter(|x| **x > 2.0).count() as u32;
    assert!(!fits(above, 1_000_000, normal_cdf(-2.0), 14.0));
    assert!(distance(&mut samples, normal_cdf) > hoeffding_margin(1_000_000));
}

#[test]
fn neighbouring_float_samples_are_independent() {
    // Box & Muller makes them in pairs; signs and sizes of what lies next to each other and half a block away must not agree.
    for generator in GENERATORS {
        let mut values = vec![0.0_f32; 1 << 19];
        float::add_gaussian(&mut values, 1.0, &mut rng(generator, Sampler::Float, 8));
        for lag in [1, 2, 16, 512, 1024] {
            let pairs = values.iter().zip(&values[lag..]);
            let draws = (values.len() - lag) as u32;
            let same_sign = pairs.clone().filter(|(a, b)| (**a > 0.0) == (**b > 0.0)).count();
            // |x| < 0.6745 has probability one half.
            let same_size =
                pairs.filter(|(a, b)| (a.abs() < 0.674_49) == (b.abs() < 0.674_49)).count();
            assert_fits("same sign", same_sign as u32, draws, 0.5, 10.0);
            assert_fits("same size", same_size as u32, draws, 0.5, 10.0);
        }
    }
}

#[test]
fn bits_bytes_and_successive_words_of_every_generator_are_fair() {
    let draws = 200_000_u32;
    for generator in GENERATORS {
        let mut rng = rng(generator, Sampler::Float, 9);
        let (mut ones, mut changed) = ([0_u32; 32], [0_u32; 32]);
        let mut bytes = [0_u32; 256];
        let mut previous = rng.next_u32();
        for _ in 0..draws {
            let word = rng.next_u32();
            for bit in 0..32 {
                ones[bit] += word >> bit & 1;
                changed[bit] += (word ^ previous) >> bit & 1;
            }
            bytes[(word & 255) as usize] += 1;
            previous = word;
        }
        for bit in 0..32 {
            assert_fits("bit", ones[bit], draws, 0.5, 320.0);
            assert_fits("changed bit", changed[bit], draws, 0.5, 320.0);
        }
        for count in bytes {
            assert_fits("byte", count, draws, 1.0 / 256.0, 320.0);
        }
    }
}

#[test]
fn packed_coins_have_exactly_their_probability_at_every_position() {
    let draws = 100_000_u32;
    let mut rng = rng(Generator::ReplayableChaCha, Sampler::Exact, 10);
    for (threshold, p) in [
        (1_u64 << 62, 0.25),
        (3 << 61, 0.375),
        (u64::MAX / 3, 1.0 / 3.0),
        (1 << 54, 2.0_f64.powi(-10)),
    ] {
        let mut ones = [0_u32; 64];
        let mut both = 0_u32;
        for _ in 0..draws {
            let word = response::bernoulli_bits(&mut rng, threshold);
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += (word >> bit & 1) as u32;
            }
            both += (word & word >> 1 & 1) as u32;
        }
        for count in ones {
            assert_fits("coin", count, draws, p, 260.0);
        }
        assert_fits("two coins", both, draws, p * p, 260.0);
    }
}

#[test]
fn poisson_sampling_takes_every_record_on_its_own_and_batches_are_binomial() {
    let (records, rounds, q) = (60_usize, 60_000_u32, 0.1);
    let mut rng = rng(Generator::ReplayableFast, Sampler::Float, 11);
    let rate = SamplingRate::new(q).unwrap();
    let mut taken = vec![0_u32; records];
    let mut sizes = vec![0_u32; records + 1];
    let mut pairs = [0_u32; 2];
    for _ in 0..rounds {
        let batch = poisson_sample(rate, records, &mut rng);
        assert!(batch.is_sorted_by(|a, b| a < b));
        batch.iter().for_each(|&i| taken[i as usize] += 1);
        sizes[batch.len()] += 1;
        pairs[0] += u32::from(batch.contains(&0) && batch.contains(&1));
        pairs[1] += u32::from(batch.contains(&7) && batch.contains(&59));
    }
    let checks = 2.0 * records as f64 + 3.0;
    for count in taken {
        assert_fits("record", count, rounds, q, checks);
    }
    for count in pairs {
        assert_fits("pair", count, rounds, q * q, checks);
    }
    let mut p = (1.0 - q).powi(records as i32);
    for (size, &count) in sizes.iter().enumerate() {
        assert_fits(&format!("batch of {size}"), count, rounds, p, checks);
        p *= (records - size) as f64 / (size + 1) as f64 * q / (1.0 - q);
    }
}

#[test]
fn a_large_poisson_sample_crosses_block_borders_without_a_seam() {
    // 3000 records are three blocks of words, the last one not full.
    let (records, rounds, q) = (3000_usize, 400_u32, 0.3);
    let mut rng = rng(Generator::ReplayableFast, Sampler::Float, 12);
    let mut taken = vec![0_u32; records];
    for _ in 0..rounds {
        for i in poisson_sample(SamplingRate::new(q).unwrap(), records, &mut rng) {
            taken[i as usize] += 1;
        }
    }
    for (i, &count) in taken.iter().enumerate() {
        assert_fits(&format!("record {i}"), count, rounds, q, records as f64 + 1.0);
    }
    let total = taken.iter().sum();
    assert_fits("all", total, rounds * records as u32, q, records as f64 + 1.0);
}

#[test]
fn binary_randomized_response_keeps_three_bits_of_four_at_ln_3() {
    // By hand: e^(ln 3) / (1 + e^(ln 3)) = 3/4. Power: 1 % more or fewer flips are found.
    let mechanism =
        BinaryRandomizedResponse { epsilon: Epsilon::new(3.0_f64.ln()).unwrap(), bits: 100 };
    let truth = vec![0xF0F0_1234_5678_9ABC_u64, 0x0000_0005_5AA5_5AA5];
    let mut rng = rng(Generator::ReplayableChaCha, Sampler::Exact, 13);
    let mut ledger = Ledger::new(Unit::Record);
    let rounds = 40_000_u32;
    let mut kept = vec![0_u32; 100];
    for _ in 0..rounds {
        let answer = ledger.release(&mechanism, truth.clone(), &mut rng).unwrap().into_inner();
        assert_eq!(answer[1] >> 36, 0, "a bit past the end was set");
        for (i, count) in kept.iter_mut().enumerate() {
            *count += u32::from((answer[i / 64] ^ truth[i / 64]) >> (i % 64) & 1 == 0);
        }
    }
    for count in &kept {
        assert_fits("kept bit", *count, rounds, 0.75, 101.0);
    }
    assert_fits("all kept bits", kept.iter().sum(), 100 * rounds, 0.75, 101.0);
    assert_eq!(ledger.events()[0].unrepeated().1, 100 * u64::from(rounds));
}

#[test]
fn randomized_response_among_three_answers_half_true_at_ln_2() {
    // By hand: e^epsilon = 2 keeps with 2 / (2 + 2), each of the two others comes with 1 / 4.
    let mut ledger = Ledger::new(Unit::Record);
    let mut rng = rng(Generator::ReplayableFast, Sampler::Exact, 14);
    let rounds = 200_000_u32;
    for (epsilon, categories, keep) in
        [(2.0_f64.ln(), 3, 0.5), (0.0, 5, 0.2), (3.0_f64.ln(), 2, 0.75)]
    {
        for truth in 0..categories {
            let mechanism =
                RandomizedResponse { epsilon: Epsilon::new(epsilon).unwrap(), categories };
            let mut counts = vec![0_u32; categories as usize];
            for _ in 0..rounds / categories {
                let answer = ledger.release(&mechanism, truth, &mut rng).unwrap().into_inner();
                counts[answer as usize] += 1;
            }
            for (answer, &count) in (0..).zip(&counts) {
                let p =
                    if answer == truth { keep } else { (1.0 - keep) / f64::from(categories - 1) };
                let what = format!("{answer} for {truth} of {categories}");
                assert_fits(&what, count, rounds / categories, p, 38.0);
            }
        }
    }
}

#[test]
fn the_noise_of_both_mechanisms_is_its_multiplier_times_the_clipping_norm_in_each_coordinate() {
    let (rounds, clipping_norm) = (20_000_u32, 2.5);
    for sampler in [Sampler::Exact, Sampler::Float] {
        let mut rng = rng(Generator::ReplayableChaCha, sampler, 15);
        let mut ledger = Ledger::new(Unit::Record);
        let gaussian = Gaussian { noise_multiplier: NoiseMultiplier::new(0.8).unwrap() };
        let laplace = Laplace { scale: LaplaceScale::new(0.8).unwrap() };
        let value = vec![1.5_f32, 0.0, -0.25];
        let (mut normal, mut two_sided) = (vec![Vec::new(); 3], vec![Vec::new(); 3]);
        for _ in 0..rounds {
            let input = Bounded::clip(value.clone(), clipping_norm).unwrap();
            let noisy = ledger.release(&gaussian, input, &mut rng).unwrap();
            let input = BoundedL1::clip(value.clone(), clipping_norm).unwrap();
            let other = ledger.release(&laplace, input, &mut rng).unwrap();
            for i in 0..3 {
                let standard = |x: f32| f64::from(x - value[i]) / (0.8 * clipping_norm);
                normal[i].push(standard(noisy.get()[i]));
                two_sided[i].push(standard(other.get()[i]));
            }
        }
        // The exact sampler adds up to one part in 1000 for its grid: far below the margin, 0.023.
        let margin = hoeffding_margin(rounds);
        for i in 0..3 {
            let far = distance(&mut normal[i], normal_cdf);
            assert!(far <= margin, "gaussian {sampler:?} coordinate {i}: {far}");
            let far = distance(&mut two_sided[i], laplace_cdf);
            assert!(far <= margin, "laplace {sampler:?} coordinate {i}: {far}");
            // Variances 1 and 2; Chebyshev would be loose, but the law itself is checked above: 10 % is 10 deviations.
            let variance = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>() / f64::from(rounds);
            assert!((variance(&normal[i]) - 1.0).abs() < 0.1, "{sampler:?}");
            assert!((variance(&two_sided[i]) - 2.0).abs() < 0.4, "{sampler:?}");
        }
        assert_eq!(ledger.noise(), [rng.source()]);
        assert_eq!(ledger.events()[0].unrepeated().0, &Event::gaussian(gaussian.noise_multiplier));
    }
}

#[test]
fn the_same_seed_gives_the_same_noise_and_another_seed_another() {
    for generator in [Generator::ReplayableChaCha, Generator::ReplayableFast] {
        for sampler in [Sampler::Exact, Sampler::Float] {
            let noise = |seed| {
                let mut ledger = Ledger::new(Unit::Record);
                let mechanism = Gaussian { noise_multiplier: NoiseMultiplier::new(1.0).unwrap() };
                let input = Bounded::clip(vec![0.0; 3000], 1.0).unwrap();
                let mut rng = rng(generator, sampler, seed);
                ledger.release(&mechanism, input, &mut rng).unwrap().into_inner()
            };
            assert_eq!(noise(1), noise(1));
            // Chance of an equal coordinate: below 3000 * 2^-20.
            assert!(noise(1).iter().zip(noise(2)).filter(|(a, b)| **a == *b).count() < 20);
        }
    }
}
