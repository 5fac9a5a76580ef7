//! Images made coarse and noisy.
use crate::Error;
use dosimeter_data::{Dataset, Inputs};
use dosimeter_privacy::mechanisms::Laplace;
use dosimeter_privacy::{BoundedL1, Epsilon, Event, LaplaceScale, Ledger, NoiseRng, Unit};
use std::ops::Range;

/// Averages an image over square cells and adds Laplace noise to each average; every pixel of the cell gets what comes out, cut
/// off to `[0, 255]` and rounded, so the image keeps its size.
///
/// Where the side of a cell does not divide that of the image, the cells at the right and lower edge are smaller: every pixel
/// belongs to one cell and counts once. (Cells shifted back so as to overlap would count some pixels twice and need up to four
/// times the noise everywhere.) The noise of a cell of `k` pixels has scale `255 m c / (k epsilon)`, `m` neighbouring pixels and
/// `c` channels, each channel averaged on its own: a pixel moves it by at most `255 / k` in each channel, so whatever cells they
/// lie in, `m` pixels cost `epsilon` at most, and a whole image of `n` pixels `n epsilon / m`.
///
/// # Source
/// Fan, *Image Pixelization with Differential Privacy*, DBSec 2018 (Algorithm 1; there `c = 1` and `b` divides the sides).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pixelization {
    /// Side of a cell, in pixels; at least 1, at most the longer side of the image.
    pub cell: usize,
    /// Pixels in which two images may differ and still be protected at `epsilon`, from 1 to all of an image. A pixel is a place:
    /// all its channels may differ.
    pub neighbouring_pixels: u64,
    /// Loss between two such images, nats; above 0.
    pub epsilon: Epsilon,
}

/// Pixels are numbers in `[0, 1]`; moved by this they are bounded by it.
const HALF_RANGE: f64 = 0.5;

impl Pixelization {
    /// Randomizes every image on its own.
    ///
    /// # Guarantee
    /// The ledger is that of **one** image (every image's is the same) as a whole: its unit is the feature vector, the relation is
    /// Local. What the same noise guarantees between images that differ in few pixels says [`Self::between_neighbours`]. Labels are
    /// **not** randomized: they count as public.
    ///
    /// # Errors
    /// [`Error::NoRecords`] for an empty data set; [`Error::Column`] for one without images; [`Error::Recipe`] for a cell or a
    /// number of pixels that the images do not have; [`Error::Privacy`] if noise of that size cannot be drawn.
    pub fn randomize(
        &self,
        dataset: &Dataset,
        rng: &mut NoiseRng,
    ) -> Result<(Dataset, Ledger), Error> {
        let shape = self.check(dataset)?;
        let cells = self.cells(shape)?;
        let width = dataset.width();
        let mut values = Vec::with_capacity(dataset.len() * width);
        let mut row = Vec::with_capacity(width);
        let mut first = None;
        for record in 0..dataset.len() {
            row.clear();
            dataset.inputs.append_row(record, &mut row);
            let mut ledger = Ledger::new(Unit::FeatureVector);
            for channel in row.chunks_exact_mut(shape[1] * shape[2]) {
                for cell in &cells {
                    let centred = (cell.mean(channel, shape[2]) - HALF_RANGE) as f32;
                    let bounded = BoundedL1::clip(vec![centred], HALF_RANGE)?;
                    let noisy = ledger.release(&cell.noise, bounded, rng)?.into_inner();
                    cell.fill(channel, shape[2], noisy[0] + HALF_RANGE as f32);
                }
            }
            // In [0, 1] by now, so a byte.
            values.extend(row.iter().map(|value| (value * 255.0).round() as u8));
            first.get_or_insert(ledger);
        }
        let mut randomized = dataset.clone();
        randomized.name = format!("{}, pixelized", dataset.name);
        randomized.inputs = Inputs::Bytes { width, highest: u8::MAX, values };
        first.map(|ledger| (randomized, ledger)).ok_or(Error::NoRecords)
    }
    /// What the noise guarantees between two images that differ in at most [`Self::neighbouring_pixels`] pixels: one Laplace
    /// release of loss [`Self::epsilon`], for this unit.
    ///
    /// # Errors
    /// [`Error::Privacy`] for an epsilon of 0, or unbounded.
    pub fn between_neighbours(&self) -> Result<Ledger, Error> {
        let scale = LaplaceScale::new(2.0 / self.epsilon.get());
        let scale = scale.map_err(dosimeter_privacy::Error::from)?;
        let mut ledger = Ledger::new(Unit::Pixels(self.neighbouring_pixels));
        ledger.record(Event::Laplace { scale }, 1);
        Ok(ledger)
    }
    /// The shape of the images, which have such cells and so many pixels.
    ///
    /// # Errors
    /// As [`Self::randomize`].
    pub fn check(&self, dataset: &Dataset) -> Result<[usize; 3], Error> {
        let Some(shape) = dataset.shape() else {
            let column = dataset.columns.first().map_or_else(String::new, |c| c.name.clone());
            return Err(Error::Column {
                column,
                what: "pixelization needs images, and this is a table",
            });
        };
        let [_, height, width] = shape;
        let wrong = |what, needed, got: f64| Err(Error::Recipe { what, needed, got });
        if !(1..=height.max(width)).contains(&self.cell) {
            let needed = "at least 1 and at most the longer side of the images";
            return wrong("the side of a cell", needed, self.cell as f64);
        }
        if !(1..=(height * width) as u64).contains(&self.neighbouring_pixels) {
            let needed = "at least 1 and at most the pixels of an image";
            return wrong("neighbouring pixels", needed, self.neighbouring_pixels as f64);
        }
        Ok(shape)
    }
    /// The averages that are released of an image of a shape, channel by channel.
    ///
    /// # Errors
    /// [`Error::Privacy`] if noise of that size cannot be drawn.
    pub fn averages(&self, shape: [usize; 3]) -> Result<Vec<NoisyMean>, Error> {
        let [channels, height, width] = shape;
        let cells = self.cells(shape)?;
        let of = |channel: usize, cell: &Cell| NoisyMean {
            places: (cell.rows.clone())
                .flat_map(|row| cell.columns.clone().map(move |column| row * width + column))
                .map(|place| channel * height * width + place)
                .collect(),
            // Noise is drawn in units of the bound.
            scale: cell.noise.scale.get() * HALF_RANGE,
        };
        Ok((0..channels).flat_map(|c| cells.iter().map(move |cell| of(c, cell))).collect())
    }
    fn cells(&self, [channels, height, width]: [usize; 3]) -> Result<Vec<Cell>, Error> {
        let parts = |side: usize| {
            (0..side).step_by(self.cell).map(move |from| from..(from + self.cell).min(side))
        };
        let mut cells = Vec::new();
        for rows in parts(height) {
            for columns in parts(width) {
                let pixels = (rows.len() * columns.len()) as f64;
                let moved = self.neighbouring_pixels as f64 * channels as f64 / pixels;
                // In units of the bound, which is half the range.
                let scale = LaplaceScale::new(moved / (HALF_RANGE * self.epsilon.get()));
                let scale = scale.map_err(dosimeter_privacy::Error::from)?;
                cells.push(Cell { rows: rows.clone(), columns, noise: Laplace { scale } });
            }
        }
        Ok(cells)
    }
}

/// An average of some numbers of a record, released with Laplace noise and cut off to `[0, 1]`.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyMean {
    /// Positions in the record; after the release all of them hold the average.
    pub places: Vec<usize>,
    /// Of the noise, for numbers in `[0, 1]`.
    pub scale: f64,
}
impl NoisyMean {
    /// The average in a record, without noise; NaN without places.
    ///
    /// # Panics
    /// If a place is outside of the record.
    #[must_use]
    pub fn of(&self, record: &[f32]) -> f64 {
        let sum: f64 = self.places.iter().map(|&place| f64::from(record[place])).sum();
        sum / self.places.len() as f64
    }
}

/// Pixels that are averaged together.
struct Cell {
    rows: Range<usize>,
    columns: Range<usize>,
    noise: Laplace,
}
impl Cell {
    /// The mean of its pixels of one channel of `width` columns.
    fn mean(&self, channel: &[f32], width: usize) -> f64 {
        let mut sum = 0.0;
        for row in self.rows.clone() {
            let row = &channel[row * width..(row + 1) * width];
            sum += row[self.columns.clone()].iter().map(|&value| f64::from(value)).sum::<f64>();
        }
        sum / (self.rows.len() * self.columns.len()) as f64
    }
    fn fill(&self, channel: &mut [f32], width: usize, value: f32) {
        for row in self.rows.clone() {
            let row = &mut channel[row * width..(row + 1) * width];
            row[self.columns.clone()].fill(value.clamp(0.0, 1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosimeter_privacy::{ACCOUNTANTS, Delta, Relation};

    fn images(shape: [usize; 3], values: Vec<u8>) -> Dataset {
        let width = shape.iter().product();
        let records = values.len() / width;
        let inputs = Inputs::Bytes { width, highest: 255, values };
        Dataset::from_images("images", shape, inputs, vec![0; records], vec!["one".into()]).unwrap()
    }
    fn pixelization(cell: usize, neighbouring_pixels: u64, epsilon: f64) -> Pixelization {
        Pixelization { cell, neighbouring_pixels, epsilon: Epsilon::new(epsilon).unwrap() }
    }
    /// Cell means of the first channel on the scale of bytes, without noise.
    fn means(pixelization: &Pixelization, shape: [usize; 3], channel: &[f32]) -> Vec<f64> {
        let cells = pixelization.cells(shape).unwrap();
        cells.iter().map(|cell| 255.0 * cell.mean(channel, shape[2])).collect()
    }
    fn basic(ledger: &Ledger) -> f64 {
        let basic = ACCOUNTANTS.iter().find(|a| a.name() == "basic").unwrap();
        let zero = Delta::new(0.0).unwrap();
        basic.epsilon_upper(ledger, Relation::Local, zero).unwrap().get()
    }
    /// Noise of scale `255 / 1e6` on the scale of bytes: what comes out is what was averaged.
    fn noiseless(cell: usize) -> Pixelization {
        pixelization(cell, 1, 1e6)
    }
    fn bytes(dataset: &Dataset) -> &[u8] {
        let Inputs::Bytes { values, .. } = &dataset.inputs else { unreachable!() };
        values
    }

    #[test]
    fn averages_of_full_and_of_smaller_cells_are_the_hand_worked_ones() {
        #[rustfmt::skip]
        let image = vec![
            10, 20, 30,
            30, 40, 70,
            50, 70, 90,
        ];
        let mut rng = NoiseRng::experiment([1; 32]);
        let (made, _) = noiseless(2).randomize(&images([1, 3, 3], image), &mut rng).unwrap();
        #[rustfmt::skip]
        assert_eq!(bytes(&made), [
            25, 25, 50,
            25, 25, 50,
            60, 60, 90,
        ]);
        assert_eq!(made.shape(), Some([1, 3, 3]));
        // Two channels of two rows are averaged apart; one cell longer than the image is high.
        let image = vec![0, 10, 20, 30, 100, 110, 120, 130];
        let (made, _) = noiseless(2).randomize(&images([2, 2, 2], image), &mut rng).unwrap();
        assert_eq!(bytes(&made), [15, 15, 15, 15, 115, 115, 115, 115]);
        let wide = images([1, 1, 3], vec![3, 6, 9]);
        assert_eq!(bytes(&noiseless(3).randomize(&wide, &mut rng).unwrap().0), [6, 6, 6]);
    }

    /// By hand: 5 neighbouring pixels at 2 nats of two channels move a corner cell of one pixel by 5, one of two by 5/2, one of four
    /// by 5/4.
    #[test]
    fn what_is_released_are_the_averages_of_each_cell_in_each_channel() {
        let averages = pixelization(2, 5, 2.0).averages([2, 3, 3]).unwrap();
        let of = |places: &[usize], scale: f64| NoisyMean { places: places.to_vec(), scale };
        let first = [of(&[0, 1, 3, 4], 1.25), of(&[2, 5], 2.5), of(&[6, 7], 2.5), of(&[8], 5.0)];
        assert_eq!(averages.len(), 8);
        for (found, wanted) in averages.iter().zip(&first) {
            assert_eq!(found.places, wanted.places);
            assert!((found.scale - wanted.scale).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(averages[4].places, [9, 10, 12, 13]);
        let record: Vec<f32> = (0..18).map(|i| i as f32).collect();
        assert!((averages[4].of(&record) - 11.0).abs() < 1e-12);
    }

    /// A corner cell of one pixel has four times the noise of a full one of four, and both spend what their pixels do.
    #[test]
    fn the_scale_of_every_cell_is_the_hand_worked_one() {
        let cells = pixelization(2, 3, 0.5).cells([3, 3, 3]).unwrap();
        // 255 m c / (k epsilon) over the bound 127.5: 2 x 3 x 3 / (0.5 k) = 36 / k.
        let scales: Vec<f64> = cells.iter().map(|cell| cell.noise.scale.get()).collect();
        for (got, wanted) in scales.iter().zip([9.0, 18.0, 18.0, 36.0]) {
            assert!((got - wanted).abs() < 1e-12, "{scales:?}");
        }
    }

    #[test]
    fn a_whole_image_costs_as_many_times_epsilon_as_it_has_sets_of_neighbouring_pixels() {
        let mut rng = NoiseRng::experiment([2; 32]);
        for (shape, cell) in [([1, 5, 7], 2), ([3, 4, 4], 4), ([2, 3, 5], 1), ([1, 6, 4], 6)] {
            let [channels, height, width] = shape;
            let image = images(shape, vec![9; channels * height * width]);
            let pixelization = pixelization(cell, 4, 0.75);
            let (_, ledger) = pixelization.randomize(&image, &mut rng).unwrap();
            assert_eq!(ledger.unit(), Unit::FeatureVector);
            let wanted = (height * width) as f64 / 4.0 * 0.75;
            let got = basic(&ledger);
            assert!(
                got >= wanted && got <= wanted * (1.0 + 1e-9),
                "{shape:?}: {got}, not {wanted}"
            );
            let few = pixelization.between_neighbours().unwrap();
            assert_eq!(few.unit(), Unit::Pixels(4));
            assert!((basic(&few) - 0.75).abs() < 1e-9);
        }
    }

    /// Change `m` pixels at random by as much as they can be changed: the sum over cells of movement over scale, which is the loss,
    /// is at most epsilon; and where the cells are full, the movement is at most `255 m / b^2`.
    #[test]
    fn any_few_pixels_move_the_averages_by_no_more_than_the_noise_allows() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % below
        };
        let mut largest: f64 = 0.0;
        for round in 0..400 {
            let (height, width) = (1 + random(9), 1 + random(9));
            let (cell, m) = (1 + random(height.max(width)), 1 + random(height * width));
            let shape = [1, height, width];
            let pixelization = pixelization(cell, m as u64, 1.5);
            let one: Vec<f32> =
                (0..height * width).map(|_| (random(2) * 255) as f32 / 255.0).collect();
            let mut other = one.clone();
            // Some rounds change pixels of the last cell, which is the smallest, first.
            for i in 0..m {
                let place = if round % 2 == 0 { random(other.len()) } else { other.len() - 1 - i };
                other[place] = 1.0 - one[place];
            }
            let (a, b) = (means(&pixelization, shape, &one), means(&pixelization, shape, &other));
            let moved = |i: usize| (a[i] - b[i]).abs();
            let cells = pixelization.cells(shape).unwrap();
            let loss: f64 =
                (0..a.len()).map(|i| moved(i) / (127.5 * cells[i].noise.scale.get())).sum();
            assert!(loss <= 1.5 * (1.0 + 1e-6), "{shape:?} {cell} {m}: {loss}");
            largest = largest.max(loss);
            if height % cell == 0 && width % cell == 0 {
                let bound = 255.0 * m as f64 / (cell * cell) as f64;
                let sum: f64 = (0..a.len()).map(moved).sum();
                assert!(sum <= bound * (1.0 + 1e-6), "{shape:?} {cell} {m}: {sum}, bound {bound}");
            }
        }
        assert!(largest > 1.49, "no change came near the bound: {largest}");
    }

    /// Cells of four pixels, `m = 4` and epsilon 2: scale `255 x 4 / (4 x 2) = 127.5`. From 127.5 the noise leaves `[0, 255]` on
    /// either side with probability `e^-1 / 2 = 0.18394`, and rounding adds half a grey level: `e^(-127 / 127.5) / 2 = 0.18466` to come
    /// out as 0 or 255. From 0, as 0: `1 - e^(-0.5 / 127.5) / 2 = 0.50196`; as 255: `e^(-254.5 / 127.5) / 2 = 0.06793`. Worked by hand.
    /// By Hoeffding's inequality 40,000 draws are off by 0.0164 with probability at most 1e-9 each. A scale larger by a fifth moves
    /// the first to `e^(-1 / 1.2) / 2 = 0.217`, a smaller one to 0.143, both by twice that: it is seen as surely.
    #[test]
    fn noise_has_the_scale_of_the_definition_and_is_cut_off_at_both_ends() {
        let n = 40_000;
        let mut rng = NoiseRng::experiment([4; 32]);
        let mut share = |grey: u8, holds: &dyn Fn(u8) -> bool| {
            // Two levels alternate to the mean 127.5.
            let other = if grey == 127 { 128 } else { grey };
            let data = images([1, 2, 2], [grey, other, grey, other].repeat(n));
            let (made, _) = pixelization(2, 4, 2.0).randomize(&data, &mut rng).unwrap();
            let values = bytes(&made);
            assert!(values.chunks_exact(4).all(|image| image.iter().all(|v| *v == image[0])));
            values.chunks_exact(4).filter(|image| holds(image[0])).count() as f64 / n as f64
        };
        for (grey, end, wanted) in [
            (127, 0, 0.184_66),
            (127, 255, 0.184_66),
            (0, 0, 0.501_96),
            (0, 255, 0.067_93),
            (255, 255, 0.501_96),
            (255, 0, 0.067_93),
        ] {
            let got = share(grey, &|value| value == end);
            assert!(
                (got - wanted).abs() < dosimeter_testing::hoeffding_margin(n as u32),
                "{grey} to {end}: {got}, not {wanted}"
            );
        }
    }

    #[test]
    fn tables_and_cells_and_pixels_that_images_do_not_have_are_refused() {
        let mut rng = NoiseRng::experiment([0; 32]);
        let image = images([1, 2, 3], vec![0; 6]);
        for (cell, m) in [(0, 1), (4, 1), (1, 0), (1, 7)] {
            let refused = pixelization(cell, m, 1.0).randomize(&image, &mut rng);
            assert!(matches!(refused, Err(Error::Recipe { .. })), "{cell} {m}: {refused:?}");
        }
        let refused = pixelization(1, 1, 0.0).randomize(&image, &mut rng);
        assert!(matches!(refused, Err(Error::Privacy(_))), "{refused:?}");
        let table = Dataset::from_reals("table", 1, vec![0.5], vec![0], 1).unwrap();
        let refused = pixelization(1, 1, 1.0).randomize(&table, &mut rng);
        assert!(matches!(refused, Err(Error::Column { .. })), "{refused:?}");
        let empty = images([1, 1, 1], vec![]);
        assert!(matches!(
            pixelization(1, 1, 1.0).randomize(&empty, &mut rng),
            Err(Error::NoRecords)
        ));
    }
}
