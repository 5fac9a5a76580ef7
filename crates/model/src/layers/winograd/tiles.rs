//! Tiles of planes, and the products' operands that they become.
use super::maps::{LANES, Map, Vector, ZERO, both, transpose};
use crate::kernels::{Finish, Matrix, Write};
use pulp::Arch;
use std::ops::Range;

/// From one element of transformed tiles to the next: an odd number of cache lines, so that the elements of a tile do not
/// push each other out of the first-level cache.
pub(super) const fn apart(numbers: usize) -> usize {
    (numbers.div_ceil(LANES) | 1) * LANES
}

/// Element `k` of transformed tiles or kernels.
pub(super) fn element(numbers: &[f32], k: usize, rows: usize, columns: usize) -> Matrix<'_> {
    let count = rows * columns;
    Matrix::new(&numbers[k * apart(count)..][..count], rows, columns)
}

/// Planes of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planes {
    /// Of one group.
    pub(super) channels: usize,
    /// Of all groups.
    pub(super) of_record: usize,
    /// The first one of the group.
    pub(super) first: usize,
    /// Rows and columns.
    pub(super) size: [usize; 2],
    /// Rows and columns of zeros that tiles see before the first.
    pub(super) before: [usize; 2],
}

/// Tiles that lie over the planes of many records, `step` numbers from each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    /// Tiles down and across.
    tiles: [usize; 2],
    step: usize,
}

impl Grid {
    pub(super) fn new(size: [usize; 2], step: usize) -> Self {
        Self { tiles: size.map(|size| size.div_ceil(step)), step }
    }
    pub(super) const fn tiles(&self) -> usize {
        self.tiles[0] * self.tiles[1]
    }
    /// Tiles in some rows.
    pub(super) fn width(&self, part: &Range<usize>) -> usize {
        part.len() * self.tiles[1]
    }
    /// Rows of tiles, counted through all records, of about `most` tiles each.
    pub(super) fn parts(
        &self,
        records: Range<usize>,
        most: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let together = most.div_ceil(self.tiles[1]).max(1);
        let (start, end) = (records.start * self.tiles[0], records.end * self.tiles[0]);
        (start..end).step_by(together).map(move |start| start..end.min(start + together))
    }
    /// The parts of a part that lie in one record: first tile, record, rows of tiles.
    fn runs(
        &self,
        part: &Range<usize>,
    ) -> impl Iterator<Item = (usize, usize, Range<usize>)> + use<> {
        let ([down, across], Range { start, end }) = (self.tiles, part.clone());
        (start / down..end.div_ceil(down)).map(move |record| {
            let rows = start.max(record * down)..end.min((record + 1) * down);
            let tile = (rows.start - start) * across;
            (tile, record, rows.start - record * down..rows.end - record * down)
        })
    }

    /// The tiles of some rows, transformed: `[TO * TO, tiles, channels]`.
    pub(super) fn spread<M: Map<FROM, TO>, const FROM: usize, const TO: usize>(
        &self,
        planes: Planes,
        numbers: &[f32],
        part: &Range<usize>,
        out: &mut Vec<f32>,
        block: &mut Vec<Vector>,
    ) {
        let (channels, [_, across], step) = (planes.channels, self.tiles, self.step);
        let stride = apart(self.width(part) * channels);
        resize(out, TO * TO, self.width(part) * channels);
        let columns = (across - 1) * step + FROM;
        for (tile, record, run) in self.runs(part) {
            let rows = (run.len() - 1) * step + FROM;
            // Zeros around a plane stay from channel to channel.
            block.clear();
            block.resize(rows * columns, ZERO);
            let cut = Cut { planes, first_row: run.start * step, rows, columns };
            let numbers = &numbers[planes.of(record)];
            let (out, block, down) = (&mut out[..], &mut block[..], run.len());
            Arch::new().dispatch(
                #[inline(always)]
                move || {
                    let (out, block) = (out, block);
                    for first in (0..channels).step_by(LANES) {
                        let lanes = LANES.min(channels - first);
                        cut.read(&numbers[first * planes.area()..], lanes, block);
                        for i in 0..down * across {
                            let at = (i / across * columns + i % across) * step;
                            let to = (tile + i) * channels + first;
                            both::<M, FROM, TO>(
                                #[inline(always)]
                                |r, c| &block[at + r * columns + c],
                                #[inline(always)]
                                |k, x| put(x, lanes, &mut out[k * stride + to..]),
                            );
                        }
                    }
                },
            );
        }
    }

    /// Transformed tiles `[FROM * FROM, tiles, channels]` back to planes, finished.
    #[expect(clippy::too_many_arguments, reason = "the parts of one pass")]
    pub(super) fn collect<M: Map<FROM, TO>, const FROM: usize, const TO: usize>(
        &self,
        planes: Planes,
        tiles: &[f32],
        part: &Range<usize>,
        finish: Finish<'_>,
        out: &mut [f32],
        write: Write,
        block: &mut Vec<Vector>,
    ) {
        let (channels, [_, across]) = (planes.channels, self.tiles);
        let stride = apart(self.width(part) * channels);
        let columns = across * TO;
        for (tile, record, run) in self.runs(part) {
            let rows = run.len() * TO;
            block.clear();
            block.resize(rows * columns, ZERO);
            let cut = Cut { planes, first_row: run.start * TO, rows, columns };
            let out = &mut out[planes.of(record)];
            let (block, down) = (&mut block[..], run.len());
            Arch::new().dispatch(
                #[inline(always)]
                move || {
                    let (out, block) = (out, block);
                    for first in (0..channels).step_by(LANES) {
                        let lanes = LANES.min(channels - first);
                        let biases: Vector = std::array::from_fn(|i| finish.bias(first + i));
                        for i in 0..down * across {
                            let from = (tile + i) * channels + first;
                            let at = (i / across * columns + i % across) * TO;
                            both::<M, FROM, TO>(
                                #[inline(always)]
                                |r, c| sixteen(tiles, (r * FROM + c) * stride + from),
                                #[inline(always)]
                                |k, sums| {
                                    let to = &mut block[at + k / TO * columns + k % TO];
                                    for lane in 0..LANES {
                                        to[lane] = finish.limits.of(biases[lane] + sums[lane]);
                                    }
                                },
                            );
                        }
                        cut.write(block, lanes, &mut out[first * planes.area()..], write);
                    }
                },
            );
        }
    }
}

impl Planes {
    /// Of the first of some groups.
    pub(super) const fn new(
        channels: usize,
        groups: usize,
        size: [usize; 2],
        before: [usize; 2],
    ) -> Self {
        Self { channels, of_record: channels * groups, first: 0, size, before }
    }
    /// Where the planes of one record lie.
    fn of(&self, record: usize) -> Range<usize> {
        let first = (record * self.of_record + self.first) * self.area();
        first..first + self.channels * self.area()
    }
    pub(super) const fn area(&self) -> usize {
        self.size[0] * self.size[1]
    }
}

/// Some rows of planes with zeros around, as the numbers of sixteen channels at every place.
#[derive(Debug, Clone, Copy)]
struct Cut {
    planes: Planes,
    /// The first row, counted from the first row of zeros.
    first_row: usize,
    rows: usize,
    columns: usize,
}
impl Cut {
    /// Places inside the plane, and where the first of them lies in the cut.
    fn inside(&self) -> (Range<usize>, usize) {
        let Planes { size: [height, width], before, .. } = self.planes;
        let first = self.first_row.saturating_sub(before[0]);
        let end = (self.first_row + self.rows).saturating_sub(before[0]).min(height);
        let at = (first + before[0] - self.first_row) * self.columns + before[1];
        (first * width..end.max(first) * width, at)
    }
    /// Sixteen places at a time: the first, how many.
    #[inline(always)]
    fn chunks(places: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
        let end = places.end;
        places.step_by(LANES).map(move |place| (place, LANES.min(end - place)))
    }
    /// Pieces of so many places that lie in one row: how many before, where in the cut, how many; and moves on.
    #[inline(always)]
    fn pieces(
        &self,
        count: usize,
        at: &mut usize,
        column: &mut usize,
        mut each: impl FnMut(usize, usize, usize),
    ) {
        let width = self.planes.size[1];
        let mut done = 0;
        while done < count {
            let length = (count - done).min(width - *column);
            each(done, *at, length);
            done += length;
            *at += length;
            *column += length;
            if *column == width {
                *at += self.columns - width;
                *column = 0;
            }
        }
    }
    #[inline(always)]
    fn read(&self, numbers: &[f32], lanes: usize, block: &mut [Vector]) {
        let area = self.planes.area();
        let (places, mut at) = self.inside();
        let mut column = 0;
        for (place, count) in Self::chunks(places) {
            let mut last = [ZERO; LANES];
            let mut rows = [&ZERO; LANES];
            if count == LANES {
                for (lane, row) in rows.iter_mut().take(lanes).enumerate() {
                    *row = sixteen(numbers, lane * area + place);
                }
            } else {
                for (lane, row) in last.iter_mut().take(lanes).enumerate() {
                    row[..count].copy_from_slice(&numbers[lane * area + place..][..count]);
                }
                rows = last.each_ref();
            }
            if column + LANES <= self.planes.size[1]
                && let Some(block) = block[at..].first_chunk_mut()
            {
                transpose(rows, block);
                self.pieces(LANES, &mut at, &mut column, |_, _, _| {});
                continue;
            }
            let mut turned = [ZERO; LANES];
            transpose(rows, &mut turned);
            self.pieces(
                count,
                &mut at,
                &mut column,
                #[inline(always)]
                |done, at, length| {
                    block[at..at + length].copy_from_slice(&turned[done..done + length]);
                },
            );
        }
    }
    #[inline(always)]
    fn write(&self, block: &[Vector], lanes: usize, out: &mut [f32], write: Write) {
        let area = self.planes.area();
        let (places, mut at) = self.inside();
        let mut column = 0;
        for (place, count) in Self::chunks(places) {
            let (mut rows, mut turned) = ([ZERO; LANES], [ZERO; LANES]);
            if column + LANES <= self.planes.size[1]
                && let Some(block) = block[at..].first_chunk::<LANES>()
            {
                transpose(block.each_ref(), &mut turned);
                self.pieces(LANES, &mut at, &mut column, |_, _, _| {});
            } else {
                self.pieces(
                    count,
                    &mut at,
                    &mut column,
                    #[inline(always)]
                    |done, at, length| {
                        rows[done..done + length].copy_from_slice(&block[at..at + length]);
                    },
                );
                transpose(rows.each_ref(), &mut turned);
            }
            for (lane, numbers) in turned.iter().take(lanes).enumerate() {
                let out = &mut out[lane * area + place..][..count];
                if write == Write::Accumulate {
                    for (out, x) in out.iter_mut().zip(numbers) {
                        *out += x;
                    }
                } else {
                    put(numbers, count, out);
                }
            }
        }
    }
}

/// Transformed tiles or kernels, and room to read sixteen numbers from each of them on.
pub(super) fn resize(numbers: &mut Vec<f32>, elements: usize, count: usize) {
    numbers.resize(elements * apart(count) + LANES, 0.0);
}
/// The numbers from `at` on, of which those behind the last lane mean nothing.
#[inline(always)]
pub(super) fn sixteen(numbers: &[f32], at: usize) -> &Vector {
    numbers[at..].first_chunk().unwrap_or(&ZERO)
}
#[inline(always)]
pub(super) fn put(numbers: &Vector, lanes: usize, out: &mut [f32]) {
    if lanes == LANES {
        out[..LANES].copy_from_slice(numbers);
    } else {
        out[..lanes].copy_from_slice(&numbers[..lanes]);
    }
}
