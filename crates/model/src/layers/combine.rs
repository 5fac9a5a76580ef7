//! Sums, differences, products and quotients of two values, or of a value and constants.
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::{self, Write};
use serde::{Deserialize, Serialize};

/// What becomes of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a b`.
    Multiply,
    /// `a / b`.
    Divide,
}

/// Two values, number by number. Their shapes have as many axes; an axis of length 1 is repeated along the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Combine {
    /// The first input stands on the left.
    pub operation: Arithmetic,
}

/// A value and numbers that training does not move, number by number; axes are repeated as by [`Combine`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CombineConstant {
    /// What becomes of them.
    pub operation: Arithmetic,
    /// Whether the constants stand on the left.
    pub constant_first: bool,
    /// Of the constants: as many axes as the value has.
    pub shape: Vec<usize>,
    /// In row-major order.
    pub constants: Vec<f32>,
}

impl Arithmetic {
    #[inline(always)]
    fn of(self, a: f32, b: f32) -> f32 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
        }
    }
    /// Derivative with respect to one side.
    #[inline(always)]
    fn slope(self, left: bool, a: f32, b: f32) -> f32 {
        match (self, left) {
            (Self::Add, _) | (Self::Subtract, true) => 1.0,
            (Self::Subtract, false) => -1.0,
            (Self::Multiply, true) => b,
            (Self::Multiply, false) => a,
            (Self::Divide, true) => 1.0 / b,
            (Self::Divide, false) => -a / (b * b),
        }
    }
    /// `out = a o b` for one record.
    fn forward(self, pairs: &Pairs, a: &[f32], b: &[f32], out: &mut [f32]) {
        // One loop for each operation, so that the choice is not made inside.
        match self {
            Self::Add => pairs.write(a, b, out, |a, b| Self::Add.of(a, b)),
            Self::Subtract => pairs.write(a, b, out, |a, b| Self::Subtract.of(a, b)),
            Self::Multiply => pairs.write(a, b, out, |a, b| Self::Multiply.of(a, b)),
            Self::Divide => pairs.write(a, b, out, |a, b| Self::Divide.of(a, b)),
        }
    }
    /// Adds the gradient with respect to one side, for one record.
    fn backward(self, pairs: &Pairs, left: bool, sides: [&[f32]; 2], g: &[f32], out: &mut [f32]) {
        pairs.each_run(|at, [a, b], length, [step_a, step_b]| {
            for i in 0..length {
                let (a, b) = (a + i * step_a, b + i * step_b);
                let to = if left { a } else { b };
                out[to] += g[at + i] * self.slope(left, sides[0][a], sides[1][b]);
            }
        });
    }
}

impl Operation for Combine {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        match inputs {
            [a, b] => together(a, b)
                .ok_or_else(|| Misfit::new("two shapes whose axes are of equal length or 1")),
            _ => Err(Misfit::new("two inputs")),
        }
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        let (a, b) = (read.inputs[0], read.inputs[1]);
        if self.operation == Arithmetic::Add && read.shapes[0] == read.shapes[1] {
            output.copy_from_slice(a);
            kernels::axpy(output, 1.0, b);
            return;
        }
        let pairs = Pairs::new(read.shapes[0], read.shapes[1]);
        let (a, b) = (rows(a, read.records), rows(b, read.records));
        for ((out, a), b) in rows_mut(output, read.records).zip(a).zip(b) {
            self.operation.forward(&pairs, a, b, out);
        }
    }
    fn input_gradient(
        &self,
        read: &Read<'_>,
        which: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        _: &mut Scratch,
    ) {
        if self.operation == Arithmetic::Add && read.shapes[0] == read.shapes[1] {
            match write {
                Write::Overwrite => out.copy_from_slice(gradient),
                Write::Accumulate => kernels::axpy(out, 1.0, gradient),
            }
            return;
        }
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        let pairs = Pairs::new(read.shapes[0], read.shapes[1]);
        let sides = rows(read.inputs[0], read.records).zip(rows(read.inputs[1], read.records));
        let gradients = rows(gradient, read.records);
        for ((out, g), (a, b)) in rows_mut(out, read.records).zip(gradients).zip(sides) {
            self.operation.backward(&pairs, which == 0, [a, b], g, out);
        }
    }
}

impl Operation for CombineConstant {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let input = only(inputs)?;
        let numbers = self.shape.iter().try_fold(1_usize, |n, s| n.checked_mul(*s));
        if numbers != Some(self.constants.len()) {
            return Err(Misfit::new(format!("as many constants as {:?} has", self.shape)));
        }
        together(input, &self.shape).ok_or_else(|| {
            Misfit::new(format!("a shape whose axes are of length 1 or those of {:?}", self.shape))
        })
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        let pairs = self.pairs(read);
        for (out, x) in rows_mut(output, read.records).zip(rows(read.inputs[0], read.records)) {
            let [a, b] = self.sides(x);
            self.operation.forward(&pairs, a, b, out);
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
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        let pairs = self.pairs(read);
        let records = rows(read.inputs[0], read.records).zip(rows(gradient, read.records));
        for (out, (x, g)) in rows_mut(out, read.records).zip(records) {
            self.operation.backward(&pairs, !self.constant_first, self.sides(x), g, out);
        }
    }
}
impl CombineConstant {
    fn pairs(&self, read: &Read<'_>) -> Pairs {
        if self.constant_first {
            Pairs::new(&self.shape, read.shapes[0])
        } else {
            Pairs::new(read.shapes[0], &self.shape)
        }
    }
    fn sides<'a>(&'a self, x: &'a [f32]) -> [&'a [f32]; 2] {
        if self.constant_first { [&self.constants, x] } else { [x, &self.constants] }
    }
}

/// The shape that both have when axes of length 1 are repeated.
fn together(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let axis = |(a, b): (&usize, &usize)| match (*a, *b) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    };
    (a.len() == b.len()).then(|| a.iter().zip(b).map(axis).collect())?
}

/// One slice for each record; records have at least one number.
pub(super) fn rows(values: &[f32], records: usize) -> std::slice::ChunksExact<'_, f32> {
    values.chunks_exact((values.len() / records.max(1)).max(1))
}
pub(super) fn rows_mut(values: &mut [f32], records: usize) -> std::slice::ChunksExactMut<'_, f32> {
    let width = (values.len() / records.max(1)).max(1);
    values.chunks_exact_mut(width)
}

/// Where the numbers of two shapes lie that meet at each place of their common shape.
#[derive(Debug)]
pub(super) struct Pairs {
    /// Axes of the common shape, as few as will do.
    lengths: Vec<usize>,
    /// By how much each side moves on along an axis: 0 where it is repeated.
    steps: Vec<[usize; 2]>,
}
impl Pairs {
    /// Of two shapes that fit.
    pub(super) fn new(a: &[usize], b: &[usize]) -> Self {
        let (mut lengths, mut steps): (Vec<usize>, Vec<[usize; 2]>) = (vec![1], vec![[1, 1]]);
        let mut sizes = [1, 1];
        // From the last axis to the first; an axis that goes on where the one inside ends is joined to it.
        for (a, b) in a.iter().zip(b).rev() {
            let length = *a.max(b);
            if length == 1 {
                continue;
            }
            let step = [if *a == 1 { 0 } else { sizes[0] }, if *b == 1 { 0 } else { sizes[1] }];
            sizes = [sizes[0] * a, sizes[1] * b];
            let last = lengths.len() - 1;
            let inner = (lengths[last], steps[last]);
            if inner.0 == 1 {
                (lengths[last], steps[last]) = (length, step);
            } else if step == [inner.1[0] * inner.0, inner.1[1] * inner.0] {
                lengths[last] *= length;
            } else {
                lengths.push(length);
                steps.push(step);
            }
        }
        lengths.reverse();
        steps.reverse();
        Self { lengths, steps }
    }
    /// Calls `run(at, [a, b], length, [step_a, step_b])` for each stretch of the last axis: it starts at `at` of the
    /// common shape, and at `a` and `b` of the two.
    pub(super) fn each_run(&self, mut run: impl FnMut(usize, [usize; 2], usize, [usize; 2])) {
        let last = self.lengths.len() - 1;
        let (length, step) = (self.lengths[last], self.steps[last]);
        let mut index = vec![0; last];
        let (mut at, mut places) = (0, [0, 0]);
        loop {
            run(at, places, length, step);
            at += length;
            let mut axis = last;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                let [a, b] = self.steps[axis];
                if index[axis] < self.lengths[axis] {
                    places = [places[0] + a, places[1] + b];
                    break;
                }
                index[axis] = 0;
                let back = self.lengths[axis] - 1;
                places = [places[0] - back * a, places[1] - back * b];
            }
        }
    }
    #[inline(always)]
    fn write(&self, a: &[f32], b: &[f32], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
        self.each_run(|at, [i, j], length, [step_a, step_b]| {
            let out = &mut out[at..at + length];
            match (step_a, step_b) {
                (1, 1) => {
                    let pairs = a[i..i + length].iter().zip(&b[j..j + length]);
                    for (out, (a, b)) in out.iter_mut().zip(pairs) {
                        *out = f(*a, *b);
                    }
                }
                (1, 0) => {
                    let b = b[j];
                    for (out, a) in out.iter_mut().zip(&a[i..i + length]) {
                        *out = f(*a, b);
                    }
                }
                _ => {
                    for (k, out) in out.iter_mut().enumerate() {
                        *out = f(a[i + k * step_a], b[j + k * step_b]);
                    }
                }
            }
        });
    }
}
