//! Normalization of the numbers of one record, and with statistics fixed beforehand.
use super::{Kept, Misfit, Operation, Read, Scratch, only};
use crate::kernels::{self, Write};
use serde::{Deserialize, Serialize};

/// `(x - mean) / sqrt(variance + stabilizer) * scale + shift`, with mean and variance of the record's own numbers in
/// each group of channels: no record depends on another, so per-record gradients exist.
///
/// Group normalization with `groups` 1 to `channels`; instance normalization with `groups = channels`. Parameters lie as
/// scales, then shifts.
///
/// # Source
/// Wu and He, *Group Normalization*, ECCV 2018 (arXiv:1803.08494); Ba, Kiros and Hinton, *Layer Normalization*, 2016
/// (arXiv:1607.06450).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Normalization {
    /// First dimension of the record's shape.
    pub channels: usize,
    /// Channels are cut into so many groups.
    pub groups: usize,
    /// Numbers that share a scale and a shift.
    pub affine: Affine,
    /// Added to the variance.
    pub stabilizer: f32,
}

/// Numbers that share a scale and a shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Affine {
    /// One scale and shift for each channel (group and instance normalization).
    Channel,
    /// One for each number of a group, the same for every group (layer normalization: with 1 group of whole records, with
    /// `channels` groups of what stands behind the first dimension).
    Element {
        /// Numbers of a group.
        numbers: usize,
    },
}

/// Batch normalization as at inference: `(x - mean) / sqrt(variance + stabilizer) * scale + shift` with one of each for
/// every channel, taken as they are. It cannot be trained here: with statistics of the batch a record's gradient would
/// depend on the other records. Fold it into the layer before it, or put group normalization in its place.
///
/// Parameters lie as scales, shifts, means, variances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchNormalization {
    /// First dimension of the record's shape.
    pub channels: usize,
    /// Added to the variance.
    pub stabilizer: f32,
}

impl Normalization {
    /// Scales, and as many shifts.
    const fn scales(&self) -> usize {
        match self.affine {
            Affine::Channel => self.channels,
            Affine::Element { numbers } => numbers,
        }
    }
    /// Numbers of a group, and numbers side by side to which one scale belongs.
    fn group(&self, read: &Read<'_>) -> (usize, usize) {
        let numbers: usize = read.shapes[0].iter().product();
        match self.affine {
            Affine::Channel => (numbers / self.groups, (numbers / self.channels).max(1)),
            Affine::Element { .. } => (numbers / self.groups, 1),
        }
    }
    /// The first scale of a group.
    const fn first_scale(&self, group: usize) -> usize {
        match self.affine {
            Affine::Channel => group * (self.channels / self.groups),
            Affine::Element { .. } => 0,
        }
    }
    /// Mean and one over the standard deviation.
    fn statistics(&self, group: &[f32]) -> (f64, f64) {
        let count = group.len() as f64;
        let mean = kernels::sum(group) / count;
        let squares = kernels::sum_of(
            group,
            #[inline(always)]
            |x| {
                let d = f64::from(x) - mean;
                d * d
            },
        );
        (mean, 1.0 / (squares / count + f64::from(self.stabilizer)).sqrt())
    }
    /// Adds one record's gradient of scales and shifts.
    fn add_record(&self, read: &Read<'_>, record: usize, gradient: &[f32], out: &mut [f32]) {
        let (length, run) = self.group(read);
        let (scales, shifts) = out.split_at_mut(self.scales());
        let numbers = length * self.groups;
        let input = &read.inputs[0][record * numbers..(record + 1) * numbers];
        let gradient = &gradient[record * numbers..(record + 1) * numbers];
        for (g, (input, gradient)) in
            input.chunks_exact(length).zip(gradient.chunks_exact(length)).enumerate()
        {
            let first = self.first_scale(g);
            let (mean, inverse) = self.statistics(input);
            let (scales, shifts) = (&mut scales[first..], &mut shifts[first..]);
            kernels::sums_and_dots(
                gradient,
                input,
                run,
                #[inline(always)]
                |i, sum, along| {
                    scales[i] += (mean.mul_add(-sum, along) * inverse) as f32;
                    shifts[i] += sum as f32;
                },
            );
        }
    }
}

impl Operation for Normalization {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let shape = only(inputs)?;
        let Self { channels, groups, stabilizer, affine } = *self;
        if groups == 0 || channels % groups > 0 || channels == 0 {
            return Err(Misfit::new("channels in whole groups"));
        }
        if !(stabilizer > 0.0 && stabilizer.is_finite()) {
            return Err(Misfit::new("a stabilizer that is finite and above 0"));
        }
        if shape.first() != Some(&channels) {
            return Err(Misfit::new(format!("[{channels}, ..]")));
        }
        match affine {
            Affine::Element { numbers }
                if (groups > 1 && groups != channels)
                    || numbers.checked_mul(groups) != Some(shape.iter().product()) =>
            {
                Err(Misfit::new(format!("one group of {numbers} numbers, or one for each channel")))
            }
            _ => Ok(shape.to_vec()),
        }
    }
    fn parameter_groups(&self) -> Vec<(usize, bool)> {
        vec![(self.scales(), false), (self.scales(), false)]
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        let (length, run) = self.group(read);
        let (scales, shifts) = read.parameters.split_at(self.scales());
        let groups = read.inputs[0].chunks_exact(length).zip(output.chunks_exact_mut(length));
        for (g, (input, output)) in groups.enumerate() {
            let first = self.first_scale(g % self.groups);
            let (mean, inverse) = self.statistics(input);
            for (i, (x, y)) in input.chunks_exact(run).zip(output.chunks_exact_mut(run)).enumerate()
            {
                let scale = inverse * f64::from(scales[first + i]);
                let shift = mean.mul_add(-scale, f64::from(shifts[first + i]));
                kernels::affine(x, scale as f32, shift as f32, y);
            }
        }
    }
    fn input_gradient(
        &self,
        read: &Read<'_>,
        _: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        // With x' normalized and h = scale g: (h - mean(h) - x' mean(h x')) / deviation.
        let (length, run) = self.group(read);
        let scales = &read.parameters[..self.scales()];
        let groups = read.inputs[0].chunks_exact(length).zip(gradient.chunks_exact(length));
        for (g, ((input, gradient), out)) in groups.zip(out.chunks_exact_mut(length)).enumerate() {
            let first = self.first_scale(g % self.groups);
            let (mean, inverse) = self.statistics(input);
            let scaled = &mut scratch.columns;
            scaled.clear();
            for (i, y) in gradient.chunks_exact(run).enumerate() {
                scaled.extend(y.iter().map(|y| y * scales[first + i]));
            }
            let count = length as f64;
            let sum = kernels::sum(scaled) / count;
            let along = mean.mul_add(-sum, kernels::dot(input, scaled) / count) * inverse;
            // inverse (h - sum - (x - mean) inverse along)
            let (slope, level) = (
                (-inverse * inverse * along) as f32,
                (inverse * (mean * inverse).mul_add(along, -sum)) as f32,
            );
            if write == Write::Overwrite {
                out.fill(0.0);
            }
            kernels::add_affine(input, slope, scaled, inverse as f32, level, out);
        }
    }
    fn parameter_gradient(
        &self,
        read: &Read<'_>,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        _: &mut Scratch,
    ) {
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        for record in 0..read.records {
            self.add_record(read, record, gradient, out);
        }
    }
    /// There are few parameters: each record's gradient is formed.
    fn add_squared_gradient_norms(
        &self,
        read: &Read<'_>,
        gradient: &[f32],
        squared_norms: &mut [f64],
        kept: &mut Kept,
        _: &mut Scratch,
    ) {
        let count = 2 * self.scales();
        for (record, norm) in squared_norms.iter_mut().enumerate() {
            let out = kept.add(record, count);
            self.add_record(read, record, gradient, out);
            *norm += kernels::squared_norm(out);
        }
    }
}

impl BatchNormalization {
    /// Factor and constant of each channel.
    #[must_use]
    pub fn affine(&self, parameters: &[f32]) -> Vec<(f32, f32)> {
        let [scales, shifts, means, variances] =
            [0, 1, 2, 3].map(|i| &parameters[i * self.channels..(i + 1) * self.channels]);
        (0..self.channels)
            .map(|c| {
                let deviation = (f64::from(variances[c]) + f64::from(self.stabilizer)).sqrt();
                let factor = f64::from(scales[c]) / deviation;
                let constant = f64::from(means[c]).mul_add(-factor, f64::from(shifts[c]));
                (factor as f32, constant as f32)
            })
            .collect()
    }
}

impl Operation for BatchNormalization {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let shape = only(inputs)?;
        if shape.first() != Some(&self.channels) {
            return Err(Misfit::new(format!("[{}, ..]", self.channels)));
        }
        if !(self.stabilizer >= 0.0 && self.stabilizer.is_finite()) {
            return Err(Misfit::new("a stabilizer that is finite and at least 0"));
        }
        Ok(shape.to_vec())
    }
    fn parameter_groups(&self) -> Vec<(usize, bool)> {
        vec![(self.channels, false); 4]
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        let affine = self.affine(read.parameters);
        let area = read.shapes[0][1..].iter().product();
        let planes = read.inputs[0].chunks_exact(area).zip(output.chunks_exact_mut(area));
        for ((input, output), (factor, constant)) in planes.zip(affine.iter().cycle()) {
            kernels::affine(input, *factor, *constant, output);
        }
    }
    fn input_gradient(
        &self,
        read: &Read<'_>,
        _: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        _: &mut Scratch,
    ) {
        let affine = self.affine(read.parameters);
        let area = read.shapes[0][1..].iter().product();
        let planes = gradient.chunks_exact(area).zip(out.chunks_exact_mut(area));
        for ((gradient, out), (factor, _)) in planes.zip(affine.iter().cycle()) {
            match write {
                Write::Overwrite => kernels::affine(gradient, *factor, 0.0, out),
                Write::Accumulate => kernels::axpy(out, *factor, gradient),
            }
        }
    }
}
