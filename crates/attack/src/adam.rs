//! Adam, for the attacks' own networks.
use pulp::Arch;

const FIRST_DECAY: f32 = 0.9;
const SECOND_DECAY: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// Counts steps and corrects the bias of the moments.
///
/// # Source
/// Kingma & Ba, *Adam*, ICLR 2015 (arXiv:1412.6980v9), algorithm 1 in the order of section 2's last paragraph.
#[derive(Debug, Clone)]
pub(crate) struct Adam {
    learning_rate: f64,
    steps: i32,
}
/// The learning rate of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    rate: f32,
}
impl Adam {
    pub(crate) fn new(learning_rate: f32) -> Self {
        Self { learning_rate: learning_rate.into(), steps: 0 }
    }
    pub(crate) fn next_step(&mut self) -> Step {
        self.steps = self.steps.saturating_add(1);
        let left = |decay: f32| 1.0 - f64::from(decay).powi(self.steps);
        Step { rate: (self.learning_rate * left(SECOND_DECAY).sqrt() / left(FIRST_DECAY)) as f32 }
    }
}

/// Running moments of a range of parameters.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
}
impl Moments {
    pub(crate) fn new(parameters: usize) -> Self {
        Self { first: vec![0.0; parameters], second: vec![0.0; parameters] }
    }
    /// One step against `gradient`.
    pub(crate) fn apply(&mut self, step: Step, parameters: &mut [f32], gradient: &[f32]) {
        assert_eq!((self.first.len(), self.first.len()), (parameters.len(), gradient.len()));
        let moments = self.first.iter_mut().zip(&mut self.second);
        let each = parameters.iter_mut().zip(gradient).zip(moments);
        // What is dispatched must consume what it captures: only then is it compiled for the instruction set chosen.
        Arch::new().dispatch(
            #[inline(always)]
            || {
                for ((p, &g), (m, v)) in each {
                    *m = (1.0 - FIRST_DECAY).mul_add(g, FIRST_DECAY * *m);
                    *v = (1.0 - SECOND_DECAY).mul_add(g * g, SECOND_DECAY * *v);
                    *p -= step.rate * *m / (v.sqrt() + EPSILON);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: with a constant gradient both corrected moments are exact, so every step is `rate * sign(gradient)`.
    #[test]
    fn a_constant_gradient_moves_by_the_learning_rate() {
        let (mut adam, mut moments) = (Adam::new(0.1), Moments::new(2));
        let mut parameters = [1.0, -1.0];
        for step in 1..=5_u8 {
            moments.apply(adam.next_step(), &mut parameters, &[3.0, -0.02]);
            let moved = 0.1 * f32::from(step);
            assert!((parameters[0] - (1.0 - moved)).abs() < 1e-5, "{parameters:?}");
            assert!((parameters[1] - (-1.0 + moved)).abs() < 1e-5, "{parameters:?}");
        }
    }
}
