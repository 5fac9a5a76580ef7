//! Images brought back from the noisy averages that a local randomizer left of them.
//!
//! No membership is inferred here: the question is what whoever collects randomized images sees of the images themselves.
use dosimeter_train::local::NoisyMean;
use rayon::prelude::*;

/// Most images to learn from: a linear system of as many unknowns is solved.
pub const MOST_IMAGES: usize = 1000;
/// What rounding to bytes adds to the variance of an average: that of a uniform error of one step.
const ROUNDING: f64 = 1.0 / (12.0 * 255.0 * 255.0);

/// The linear estimator of least mean squared error for images of which noisy averages are known.
///
/// The attacker knows the mechanism and has images of the same law, none of which is to be brought back. With `x` an image, `y`
/// what the mechanism released of it and the attacker's images as the law of `x`, it is
/// `mean(x) + Cov(x, y) Cov(y)^-1 (y - mean(y))`, cut off to `[0, 1]`. The noise is not drawn: mean and variance of Laplace noise
/// that is cut off at 0 and 1 are known in closed form for each average of each image. What comes back is the attacker's mean image
/// with a weighted sum of what sets his images apart, so with overwhelming noise it is that mean, a picture of no record.
///
/// A better attacker may see more: this is a floor of what the release gives away, no ceiling. The ceiling is the epsilon.
///
/// # Source
/// Kay, *Fundamentals of Statistical Signal Processing: Estimation Theory*, 1993, section 12.3; moments of the cut-off noise
/// worked out here.
#[derive(Debug)]
pub struct LinearReconstruction<'a> {
    averages: &'a [NoisyMean],
    width: usize,
    /// Mean image, `[width]`.
    mean: Vec<f64>,
    /// Images less their mean, `[images, width]`.
    deviations: Vec<f64>,
    /// Expected averages, `[averages]`, and those of each image less them, `[images, averages]`.
    expected: Vec<f64>,
    signals: Vec<f64>,
    /// Variance of what is not explained by the image, `[averages]`.
    variances: Vec<f64>,
    /// Lower triangle `L` with `L L^T = signals variances^-1 signals^T + images I`, `[images, images]`.
    factor: Vec<f64>,
}

impl<'a> LinearReconstruction<'a> {
    /// Learns from `images`, `[images, width]` of numbers in `[0, 1]`, of which the first [`MOST_IMAGES`] are used. `None` unless
    /// there are at least two, whole ones, and every average has places below `width`.
    #[must_use]
    pub fn fit(averages: &'a [NoisyMean], width: usize, images: &[f32]) -> Option<Self> {
        let known = averages.iter().all(|a| {
            !a.places.is_empty() && a.places.iter().all(|&place| place < width) && a.scale > 0.0
        });
        if width == 0 || !images.len().is_multiple_of(width) || !known || averages.is_empty() {
            return None;
        }
        let count = (images.len() / width).min(MOST_IMAGES);
        if count < 2 {
            return None;
        }
        let images = &images[..count * width];
        let rows = images.chunks_exact(width);
        let (mut signals, mut variances) = (Vec::new(), vec![0.0; averages.len()]);
        for image in rows.clone() {
            for (average, variance) in averages.iter().zip(&mut variances) {
                let (mean, of_noise) = cut_off(average.of(image), average.scale);
                signals.push(mean);
                *variance += (of_noise + ROUNDING) / count as f64;
            }
        }
        let expected = centre(&mut signals, averages.len());
        let mut deviations: Vec<f64> = images.iter().map(|&pixel| f64::from(pixel)).collect();
        let mean = centre(&mut deviations, width);
        let factor = factor(&signals, &variances, count);
        Some(Self { averages, width, mean, deviations, expected, signals, variances, factor })
    }
    /// How many images it has learned from.
    #[must_use]
    pub fn images(&self) -> usize {
        self.deviations.len() / self.width
    }
    /// The mean of the attacker's images, `[width]`: the best guess without any release.
    #[must_use]
    pub fn mean(&self) -> Vec<f32> {
        self.mean.iter().map(|&pixel| pixel as f32).collect()
    }
    /// The image of which `released`, `[width]`, was made; `[width]` of numbers in `[0, 1]`. `None` for another width.
    #[must_use]
    pub fn of(&self, released: &[f32]) -> Option<Vec<f32>> {
        if released.len() != self.width {
            return None;
        }
        let surprises: Vec<f64> = (self.averages.iter().zip(&self.expected).zip(&self.variances))
            .map(|((average, expected), variance)| (average.of(released) - expected) / variance)
            .collect();
        let signals = self.signals.chunks_exact(self.averages.len());
        let mut weights: Vec<f64> = signals.map(|signal| dot(signal, &surprises)).collect();
        solve(&self.factor, &mut weights);
        let mut image = self.mean.clone();
        for (weight, deviation) in weights.iter().zip(self.deviations.chunks_exact(self.width)) {
            for (pixel, deviation) in image.iter_mut().zip(deviation) {
                *pixel = weight.mul_add(*deviation, *pixel);
            }
        }
        Some(image.iter().map(|pixel| pixel.clamp(0.0, 1.0) as f32).collect())
    }
}

/// Mean and variance of `clamp(value + noise, 0, 1)` for Laplace noise of a scale and a value in `[0, 1]`.
fn cut_off(value: f64, scale: f64) -> (f64, f64) {
    // E max(-(value + noise), 0), and the like above 1.
    let beyond = |room: f64| 0.5 * scale * (-room / scale).exp();
    let shift = beyond(value) - beyond(1.0 - value);
    // E min(max(noise, 0), room)^2 = scale^2 (1 - e^-u (1 + u)) with u = room / scale; its series where that cancels.
    let square = |room: f64| {
        let u = room / scale;
        let part = if u < 1e-3 {
            u * u * (0.5 - u / 3.0 + u * u / 8.0)
        } else {
            (-u).exp().mul_add(-(1.0 + u), 1.0)
        };
        scale * scale * part
    };
    let square = square(value) + square(1.0 - value);
    (value + shift, shift.mul_add(-shift, square).max(0.0))
}

/// Subtracts the mean row from every row and gives it.
fn centre(rows: &mut [f64], width: usize) -> Vec<f64> {
    let count = (rows.len() / width) as f64;
    let mut mean = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x / count);
    }
    for row in rows.chunks_exact_mut(width) {
        row.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean);
    }
    mean
}

/// In eight sums, which a compiler can hold in one register; the order is the same on every machine.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// The lower triangle of Cholesky for `signals variances^-1 signals^T + count I`, row by row. Its eigenvalues are at least
/// `count`, so no root of a negative number is taken.
fn factor(signals: &[f64], variances: &[f64], count: usize) -> Vec<f64> {
    let width = variances.len();
    let roots: Vec<f64> = variances.iter().map(|v| v.sqrt()).collect();
    let mut scaled = signals.to_vec();
    for row in scaled.chunks_exact_mut(width) {
        row.iter_mut().zip(&roots).for_each(|(x, root)| *x /= root);
    }
    let mut matrix = vec![0.0; count * count];
    matrix.par_chunks_exact_mut(count).enumerate().for_each(|(i, row)| {
        let this = &scaled[i * width..(i + 1) * width];
        for (j, other) in scaled.chunks_exact(width).take(i + 1).enumerate() {
            row[j] = dot(this, other);
        }
        row[i] += count as f64;
    });
    for i in 0..count {
        let (above, row) = matrix.split_at_mut(i * count);
        for j in 0..i {
            let other = &above[j * count..=j * count + j];
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        row[i] = (row[i] - dot(&row[..i], &row[..i])).sqrt();
    }
    matrix
}

/// Solves `L L^T x = right` in place.
fn solve(factor: &[f64], right: &mut [f64]) {
    let count = right.len();
    for i in 0..count {
        let row = &factor[i * count..=i * count + i];
        right[i] = (right[i] - dot(&row[..i], &right[..i])) / row[i];
    }
    for i in (0..count).rev() {
        let row = &factor[i * count..=i * count + i];
        right[i] /= row[i];
        let known = right[i];
        right[..i].iter_mut().zip(row).for_each(|(x, l)| *x -= l * known);
    }
}

#[cfg(test)]
#[expect(clippy::suboptimal_flops, reason = "checks written as worked by hand")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn average(places: &[usize], scale: f64) -> NoisyMean {
        NoisyMean { places: places.to_vec(), scale }
    }

    /// By hand for noise of scale 1 on one pixel, the attacker's images being black and white: of black 0.5 (1 - 1/e) = 0.316060 is
    /// expected, with variance 1 - 2/e - 0.316060^2 = 0.164348; of white the mirror image. So the estimate moves by
    /// 0.5 x 0.183940 / (0.183940^2 + 0.164348) = 0.464062 of what is released beside 1/2.
    #[test]
    fn one_pixel_of_two_images_is_brought_back_as_worked_by_hand() {
        let averages = [average(&[0], 1.0)];
        let fitted = LinearReconstruction::fit(&averages, 1, &[0.0, 1.0]).unwrap();
        assert!((fitted.mean()[0] - 0.5).abs() < 1e-7);
        for (released, wanted) in [(0.0, 0.267_969), (0.5, 0.5), (1.0, 0.732_031)] {
            let found = fitted.of(&[released]).unwrap()[0];
            assert!((found - wanted).abs() < 1e-4, "{released}: {found}, not {wanted}");
        }
    }

    /// The slow way: sums over narrow slices of the noise.
    #[test]
    fn moments_of_cut_off_noise_are_those_of_a_sum_over_slices() {
        for (value, scale) in [(0.0, 0.1), (0.3, 0.02), (0.5, 1.0), (0.9, 7.0), (0.2, 500.0)] {
            // Between the two ends in slices, beyond them all at once.
            let slices = 200_000;
            let density = |x: f64| (-(x - value).abs() / scale).exp() / (2.0 * scale);
            let (mut mass, mut mean, mut square) = (0.0, 0.0, 0.0);
            for slice in 0..slices {
                let x = (f64::from(slice) + 0.5) / f64::from(slices);
                let p = density(x) / f64::from(slices);
                (mass, mean, square) = (mass + p, mean + p * x, square + p * x * x);
            }
            let above = 0.5 * (-(1.0 - value) / scale).exp();
            let below = 0.5 * (-value / scale).exp();
            assert!((mass + above + below - 1.0).abs() < 1e-6);
            let (mean, square) = (mean + above, square + above);
            let (found, variance) = cut_off(value, scale);
            assert!((found - mean).abs() < 1e-6, "{value} {scale}: {found}, not {mean}");
            let wanted = square - mean * mean;
            assert!((variance - wanted).abs() < 1e-6, "{value} {scale}: {variance}, not {wanted}");
        }
        // Little noise passes whole, save at an edge, where half of it is cut off.
        let (mean, variance) = cut_off(0.5, 1e-3);
        assert!((mean - 0.5).abs() < 1e-12 && (variance / 2e-6 - 1.0).abs() < 1e-9);
        let both = [1e-4_f64, 1e3].map(|u| cut_off(0.5, 0.5 / u).1);
        assert!((both[0] - 0.25).abs() < 1e-4 && both[1] < 1e-6, "{both:?}");
    }

    #[test]
    fn without_noise_a_mixture_of_the_known_comes_back_and_with_too_much_their_mean() {
        let images = [0.1, 0.9, 0.4, 0.7, 0.2, 0.6, 0.3, 0.3, 0.8];
        let mixed: Vec<f32> =
            (0..3).map(|i| 0.5 * images[i] + 0.3 * images[3 + i] + 0.2 * images[6 + i]).collect();
        let averages = |scale| [0, 1, 2].map(|place| average(&[place], scale));
        let quiet = averages(1e-9);
        let quiet = LinearReconstruction::fit(&quiet, 3, &images).unwrap().of(&mixed).unwrap();
        assert!(quiet.iter().zip(&mixed).all(|(a, b)| (a - b).abs() < 1e-3), "{quiet:?} {mixed:?}");
        let loud = averages(1e9);
        let loud = LinearReconstruction::fit(&loud, 3, &images).unwrap();
        let (found, mean) = (loud.of(&[0.0, 1.0, 1.0]).unwrap(), loud.mean());
        assert!(found.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {mean:?}");
    }

    #[test]
    fn what_is_no_whole_image_or_lies_outside_of_one_is_refused() {
        let (inside, outside) = ([average(&[1], 1.0)], [average(&[2], 1.0)]);
        let fit =
            |averages, images: &[f32]| LinearReconstruction::fit(averages, 2, images).is_some();
        assert!(fit(&inside, &[0.0; 4]));
        assert!(!fit(&inside, &[0.0; 2]) && !fit(&inside, &[0.0; 5]) && !fit(&outside, &[0.0; 4]));
        assert!(!fit(&[], &[0.0; 4]) && !fit(&[average(&[], 1.0)], &[0.0; 4]));
        let fitted = LinearReconstruction::fit(&inside, 2, &[0.0; 4]).unwrap();
        assert!(fitted.of(&[0.0]).is_none());
    }

    /// Gauss with the largest pivot on `[matrix | right]`.
    fn gauss(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
        let n = matrix.len();
        for column in 0..n {
            let largest = (column..n)
                .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))
                .unwrap();
            matrix.swap(column, largest);
            let pivot = matrix[column].clone();
            for row in (0..n).filter(|&row| row != column) {
                let times = matrix[row][column] / pivot[column];
                matrix[row].iter_mut().zip(&pivot).for_each(|(x, p)| *x -= times * p);
            }
        }
        (0..n).map(|i| matrix[i][n] / matrix[i][i]).collect()
    }

    proptest! {
        /// The textbook way: covariances of images and averages, and a system with one unknown for each average.
        #[test]
        fn it_is_what_the_covariances_give(
            images in proptest::collection::vec(0.0_f32..1.0, 5 * 4),
            released in proptest::collection::vec(0.0_f32..1.0, 4),
            scale in 0.05_f64..3.0,
        ) {
            let averages = [average(&[0, 1], scale), average(&[2], 2.0 * scale), average(&[3], scale)];
            let moments: Vec<Vec<(f64, f64)>> = images
                .chunks_exact(4)
                .map(|x| averages.iter().map(|a| cut_off(a.of(x), a.scale)).collect())
                .collect();
            let n = 5.0;
            let mean = |of: &dyn Fn(usize) -> f64| (0..5).map(of).sum::<f64>() / n;
            let pixel = |image: usize, i: usize| f64::from(images[4 * image + i]);
            let means_x: Vec<f64> = (0..4).map(|i| mean(&|image| pixel(image, i))).collect();
            let means_y: Vec<f64> = (0..3).map(|j| mean(&|image| moments[image][j].0)).collect();
            let y = |image: usize, j: usize| moments[image][j].0 - means_y[j];
            let mut system: Vec<Vec<f64>> = Vec::new();
            for j in 0..3 {
                let mut row: Vec<f64> = (0..3).map(|k| mean(&|image| y(image, j) * y(image, k))).collect();
                row[j] += mean(&|image| moments[image][j].1) + 1.0 / 12.0 / 255.0 / 255.0;
                row.push(averages[j].of(&released) - means_y[j]);
                system.push(row);
            }
            let solved = gauss(system);
            let fitted = LinearReconstruction::fit(&averages, 4, &images).unwrap();
            let found = fitted.of(&released).unwrap();
            for i in 0..4 {
                let moved: f64 = (0..3)
                    .map(|j| mean(&|image| (pixel(image, i) - means_x[i]) * y(image, j)) * solved[j])
                    .sum();
                let wanted = (means_x[i] + moved).clamp(0.0, 1.0);
                prop_assert!((f64::from(found[i]) - wanted).abs() < 1e-5, "{found:?} {wanted}");
            }
        }
    }
}
