//! Update rules. The private one accepts released sums only.
use crate::recipe::Optimizer;
use dosimeter_model::{GradientParts, Graph};
use dosimeter_privacy::Released;
use pulp::Arch;

/// Parameters' update rule and its memory.
#[derive(Debug, Clone)]
struct Rule {
    optimizer: Optimizer,
    l2: f64,
    steps: u32,
    first: Vec<f32>,
    second: Vec<f32>,
}
impl Rule {
    fn new(optimizer: Optimizer, l2: f64, parameters: usize) -> Self {
        let (first, second) = match optimizer {
            Optimizer::Sgd { momentum, .. } => (if momentum > 0.0 { parameters } else { 0 }, 0),
            Optimizer::Adam { .. } => (parameters, parameters),
        };
        Self { optimizer, l2, steps: 0, first: vec![0.0; first], second: vec![0.0; second] }
    }

    /// One update with the mean gradient `sum / normaliser + l2 weights`.
    fn step(&mut self, graph: &mut Graph, sum: &[f32], normaliser: f64) {
        assert_eq!(sum.len(), graph.parameters().len());
        self.steps = self.steps.saturating_add(1);
        self.update(graph, 0, sum, normaliser);
    }

    /// The part of the update that concerns the parameters from `start` on, as many as `sum` has.
    fn update(&mut self, graph: &mut Graph, start: usize, sum: &[f32], normaliser: f64) {
        let inverse = (1.0 / normaliser) as f32;
        let end = start + sum.len();
        let whole = start..end;
        let ranges: Vec<_> = if self.l2 > 0.0 {
            graph
                .parameter_ranges()
                .map(|(r, weights)| (r.start.max(start)..r.end.min(end), weights))
                .filter(|(r, _)| !r.is_empty())
                .map(|(r, weights)| (r, if weights { self.l2 } else { 0.0 }))
                .collect()
        } else {
            vec![(whole, 0.0)]
        };
        for (range, l2) in ranges {
            let parameters = &mut graph.parameters_mut()[range.clone()];
            let sum = &sum[range.start - start..range.end - start];
            match self.optimizer {
                Optimizer::Sgd { learning_rate, momentum } if momentum > 0.0 => {
                    let velocity = &mut self.first[range];
                    let (rate, momentum) = (learning_rate as f32, momentum as f32);
                    momentum_update(parameters, sum, velocity, inverse, l2 as f32, rate, momentum);
                }
                Optimizer::Sgd { learning_rate, .. } => {
                    sgd_update(parameters, sum, inverse, l2 as f32, learning_rate as f32);
                }
                Optimizer::Adam { learning_rate, beta1, beta2, stabilizer } => {
                    let steps = f64::from(self.steps);
                    let root = (1.0 - beta2.powf(steps)).sqrt();
                    let adam = Adam {
                        inverse,
                        l2: l2 as f32,
                        beta1: beta1 as f32,
                        beta2: beta2 as f32,
                        // m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + s), both corrections moved out of the loop.
                        rate: (learning_rate * root / (1.0 - beta1.powf(steps))) as f32,
                        stabilizer: (stabilizer * root) as f32,
                    };
                    let (first, second) = (&mut self.first[range.clone()], &mut self.second[range]);
                    adam.update(parameters, sum, first, second);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Adam {
    inverse: f32,
    l2: f32,
    beta1: f32,
    beta2: f32,
    rate: f32,
    stabilizer: f32,
}
impl Adam {
    fn update(self, parameters: &mut [f32], sum: &[f32], first: &mut [f32], second: &mut [f32]) {
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let parameters = parameters;
                self.update_all(parameters, sum, first, second);
            },
        );
    }

    #[inline(always)]
    fn update_all(
        self,
        parameters: &mut [f32],
        sum: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        for (((p, s), m), v) in parameters.iter_mut().zip(sum).zip(first).zip(second) {
            let g = p.mul_add(self.l2, s * self.inverse);
            *m = (*m - g).mul_add(self.beta1, g);
            let square = g * g;
            *v = (*v - square).mul_add(self.beta2, square);
            *p -= self.rate * *m / (v.sqrt() + self.stabilizer);
        }
    }
}

fn sgd_update(parameters: &mut [f32], sum: &[f32], inverse: f32, l2: f32, rate: f32) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let parameters = parameters;
            for (p, s) in parameters.iter_mut().zip(sum) {
                let g = p.mul_add(l2, s * inverse);
                *p = g.mul_add(-rate, *p);
            }
        },
    );
}

fn momentum_update(
    parameters: &mut [f32],
    sum: &[f32],
    velocity: &mut [f32],
    inverse: f32,
    l2: f32,
    rate: f32,
    momentum: f32,
) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let parameters = parameters;
            for ((p, s), v) in parameters.iter_mut().zip(sum).zip(velocity) {
                let g = p.mul_add(l2, s * inverse);
                *v = v.mul_add(momentum, g);
                *p = v.mul_add(-rate, *p);
            }
        },
    );
}

/// Updates with sums that have passed through a mechanism, and with nothing else:
///
/// ```compile_fail,E0308
/// # use dosimeter_train::{Optimizer, optimizer::PrivateOptimizer};
/// # fn show(graph: &mut dosimeter_model::Graph) {
/// let mut optimizer = PrivateOptimizer::new(Optimizer::sgd(0.1), 0.0, graph);
/// let raw: Vec<f32> = vec![0.0; graph.parameters().len()];
/// optimizer.step(graph, &raw, 128.0);
/// # }
/// ```
///
/// Moments, momentum and regularisation are post-processing of what was released.
#[derive(Debug, Clone)]
pub struct PrivateOptimizer(Rule);
impl PrivateOptimizer {
    /// For the given network, moments 0.
    #[must_use]
    pub fn new(optimizer: Optimizer, l2: f64, graph: &Graph) -> Self {
        Self(Rule::new(optimizer, l2, graph.parameters().len()))
    }
    /// One update with `sum / normaliser + l2 weights`.
    ///
    /// # Panics
    /// If the sum has not one number per parameter.
    pub fn step(&mut self, graph: &mut Graph, sum: &Released<Vec<f32>>, normaliser: f64) {
        self.0.step(graph, sum.get(), normaliser);
    }
    /// The same update in parts, for [`Ledger::release_in_parts`](dosimeter_privacy::Ledger::release_in_parts): counts
    /// one step; each part is then to be given to [`PrivateUpdate::part`] once.
    #[must_use]
    pub const fn begin<'a>(
        &'a mut self,
        graph: &'a mut Graph,
        normaliser: f64,
    ) -> PrivateUpdate<'a> {
        self.0.steps = self.0.steps.saturating_add(1);
        PrivateUpdate { rule: &mut self.0, graph, normaliser }
    }
}

/// An update under way.
#[derive(Debug)]
pub struct PrivateUpdate<'a> {
    rule: &'a mut Rule,
    graph: &'a mut Graph,
    normaliser: f64,
}
impl PrivateUpdate<'_> {
    /// Updates the parameters from `start` on with their part of the sum.
    ///
    /// # Panics
    /// If the part reaches beyond the parameters.
    #[expect(clippy::needless_pass_by_value, reason = "a released part is used once")]
    pub fn part(&mut self, start: usize, sum: Released<&[f32]>) {
        self.rule.update(self.graph, start, sum.get(), self.normaliser);
    }
}

/// The same updates from raw gradients: for the arms that prove nothing.
#[derive(Debug, Clone)]
pub struct PlainOptimizer(Rule);
impl PlainOptimizer {
    /// For the given network, moments 0.
    #[must_use]
    pub fn new(optimizer: Optimizer, l2: f64, graph: &Graph) -> Self {
        Self(Rule::new(optimizer, l2, graph.parameters().len()))
    }
    /// One update with `sum / normaliser + l2 weights`.
    ///
    /// # Panics
    /// If the sum has not one number per parameter.
    pub fn step(&mut self, graph: &mut Graph, sum: &[f32], normaliser: f64) {
        self.0.step(graph, sum, normaliser);
    }
    /// The same update from a sum that is made part by part; `memory` is working memory.
    pub fn step_in_parts(
        &mut self,
        graph: &mut Graph,
        mut sum: GradientParts<'_>,
        memory: &mut Vec<f32>,
        normaliser: f64,
    ) {
        self.0.steps = self.0.steps.saturating_add(1);
        memory.resize(sum.longest(), 0.0);
        let mut start = 0;
        loop {
            let length = sum.next_part(memory);
            if length == 0 {
                break;
            }
            self.0.update(graph, start, &memory[..length], normaliser);
            start += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosimeter_model::{Layer, Linear};

    /// One weight at 2, one bias at 3.
    fn graph() -> Graph {
        let mut graph =
            Graph::chain(&[1], vec![Layer::Linear(Linear { inputs: 1, outputs: 1 })]).unwrap();
        graph.parameters_mut().copy_from_slice(&[2.0, 3.0]);
        graph
    }
    fn after(optimizer: Optimizer, l2: f64, sums: &[[f32; 2]], normaliser: f64) -> Vec<f32> {
        let mut graph = graph();
        let mut plain = PlainOptimizer::new(optimizer, l2, &graph);
        for sum in sums {
            plain.step(&mut graph, sum, normaliser);
        }
        graph.parameters().to_vec()
    }
    fn assert_near(got: &[f32], right: [f64; 2]) {
        for (g, r) in got.iter().zip(right) {
            assert!((f64::from(*g) - r).abs() < 2e-6, "{got:?}, not {right:?}");
        }
    }

    /// Mean gradients (1, -1) then (3, -3). First step: m = 0.1, v = 0.001, corrected 1 and 1: a whole rate. Second:
    /// m = 0.09 + 0.3 = 0.39, corrected by 0.19: 2.052632; v = 0.000999 + 0.009 = 0.009999, corrected by 0.001999:
    /// 5.002001, its root 2.236516; the quotient is 0.917781 of a rate.
    #[test]
    fn two_steps_of_adam_are_as_by_hand() {
        let sums = [[4.0, -4.0], [12.0, -12.0]];
        let got = after(Optimizer::adam(0.1), 0.0, &sums[..1], 4.0);
        assert_near(&got, [1.9, 3.1]);
        let got = after(Optimizer::adam(0.1), 0.0, &sums, 4.0);
        assert_near(&got, [1.808_221_9, 3.191_778_1]);
    }

    /// Velocity 1, then 0.5 + 2 = 2.5; rate 0.1: 2 - 0.1 - 0.25. Without momentum 2 - 0.1 - 0.2.
    #[test]
    fn gradient_descent_is_as_by_hand_with_and_without_momentum() {
        let sums = [[2.0, 0.0], [4.0, 0.0]];
        let momentum = Optimizer::Sgd { learning_rate: 0.1, momentum: 0.5 };
        assert_near(&after(momentum, 0.0, &sums, 2.0), [1.65, 3.0]);
        assert_near(&after(Optimizer::sgd(0.1), 0.0, &sums, 2.0), [1.7, 3.0]);
    }

    /// Several parts, one of which holds both weights and biases, which regularisation tells apart.
    #[test]
    fn an_update_in_parts_is_the_same_update() {
        use dosimeter_privacy::mechanisms::Gaussian;
        use dosimeter_privacy::{Bounded, BoundedInParts, Ledger, NoiseMultiplier, NoiseRng, Unit};
        let mechanism = Gaussian { noise_multiplier: NoiseMultiplier::new(1.0).unwrap() };
        let momentum = Optimizer::Sgd { learning_rate: 0.1, momentum: 0.5 };
        let layer = Layer::Linear(Linear { inputs: 300, outputs: 101 });
        for optimizer in [Optimizer::adam(0.1), momentum, Optimizer::sgd(0.1)] {
            let mut graphs = [(); 2].map(|()| Graph::chain(&[300], vec![layer.clone()]).unwrap());
            for (in_parts, graph) in [true, false].into_iter().zip(&mut graphs) {
                let mut ledger = Ledger::new(Unit::Record);
                let mut rng = NoiseRng::experiment([1; 32]);
                let mut private = PrivateOptimizer::new(optimizer, 0.01, graph);
                for _ in 0..3 {
                    let mut left = graph.parameters().len();
                    if in_parts {
                        let mut memory = vec![];
                        let mut next = |out: &mut [f32]| {
                            let length = left.min(777);
                            out[..length].fill(0.5);
                            left -= length;
                            length
                        };
                        let bounded =
                            BoundedInParts::from_clipped_sum(1.0, 777, &mut next, &mut memory);
                        let mut update = private.begin(graph, 2.0);
                        let each = |start, part: Released<&[f32]>| update.part(start, part);
                        ledger
                            .release_in_parts(&mechanism, bounded.unwrap(), &mut rng, each)
                            .unwrap();
                    } else {
                        let bounded = Bounded::from_clipped_sum(vec![0.5; left], 1.0).unwrap();
                        let released = ledger.release(&mechanism, bounded, &mut rng).unwrap();
                        private.step(graph, &released, 2.0);
                    }
                }
            }
            assert_eq!(graphs[0], graphs[1]);
        }
    }

    /// No gradient at all: the weight shrinks by rate * l2 * weight = 0.1 * 0.5 * 2, the bias stays. It does so by the
    /// same amount whatever the normaliser, for it is no part of the sum.
    #[test]
    fn regularisation_pulls_weights_only_and_is_not_divided() {
        for normaliser in [1.0, 128.0] {
            assert_near(&after(Optimizer::sgd(0.1), 0.5, &[[0.0, 0.0]], normaliser), [1.9, 3.0]);
        }
    }
}
