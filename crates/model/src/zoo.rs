//! Named architectures.
use crate::{
    Activation, Affine, Convolution, Error, Graph, GraphConvolutions, Layer, Linear, Normalization,
    Pool, Pooling, Reshape, Window,
};
use rand_core::Rng;

/// Draws all weights: uniform with variance `2 / (inputs + outputs)` (Glorot and Bengio 2010) before tanh, sigmoid,
/// softmax and outputs, and `2 / inputs` (He et al. 2015) before the rectifiers, where inputs and outputs are those of
/// one number; biases are 0, scales 1. Of one-hot features one input is on, so graph convolutions of them count one.
pub fn initialise<R: Rng + ?Sized>(graph: &mut Graph, rng: &mut R) {
    for i in 0..graph.nodes().len() {
        let (layer, range) = (&graph.nodes()[i].layer, graph.parameters_of(i));
        let (weights, inputs, outputs) = match *layer {
            Layer::Linear(l) => (l.inputs * l.outputs, l.inputs, l.outputs),
            Layer::Convolution(c) => {
                let taps = c.window.kernel[0] * c.window.kernel[1];
                (c.weight_count(), c.channels / c.groups * taps, c.outputs / c.groups * taps)
            }
            Layer::Normalization(_) | Layer::BatchNormalization(_) => {
                let scales = match layer {
                    Layer::Normalization(_) => range.len() / 2,
                    _ => range.len() / 4,
                };
                // Scales and, for batch normalization, variances.
                let variances =
                    (range.len() == 4 * scales).then_some(range.end - scales..range.end);
                graph.parameters_mut()[range.start..range.start + scales].fill(1.0);
                if let Some(variances) = variances {
                    graph.parameters_mut()[variances].fill(1.0);
                }
                continue;
            }
            Layer::GraphConvolutions(ref layer) => {
                let (layer, mut inputs, mut start) = (layer.clone(), 1, range.start);
                let mut rows = layer.features;
                for outputs in layer.channels {
                    let end = start + rows * outputs;
                    let limit = (6.0 / (inputs + outputs) as f64).sqrt();
                    for weight in &mut graph.parameters_mut()[start..end] {
                        *weight = uniform(rng, limit);
                    }
                    (inputs, rows, start) = (outputs, outputs, end + outputs);
                }
                continue;
            }
            _ => continue,
        };
        let rectified = readers(graph, i).any(|layer| {
            matches!(layer, Layer::Activation(Activation::Relu | Activation::LeakyRelu { .. }))
        });
        let fan = if rectified { inputs } else { inputs + outputs };
        // A uniform number on (-limit, limit) has variance limit^2 / 3.
        let limit = (6.0 / fan as f64).sqrt();
        for weight in &mut graph.parameters_mut()[range][..weights] {
            *weight = uniform(rng, limit);
        }
    }
}

/// The layers that read what layer `i` gives, looking through normalizations.
fn readers(graph: &Graph, i: usize) -> impl Iterator<Item = &Layer> {
    let mut value = i + 1;
    while let Some(node) = graph.nodes().get(value)
        && matches!(node.layer, Layer::Normalization(_) | Layer::BatchNormalization(_))
        && node.inputs[0].position() == value
    {
        value += 1;
    }
    let reads = move |node: &&crate::Node| node.inputs.iter().any(|v| v.position() == value);
    graph.nodes().iter().filter(reads).map(|node| &node.layer)
}

/// Uniform on `(-limit, limit)`, on a grid symmetric about 0.
fn uniform<R: Rng + ?Sized>(rng: &mut R, limit: f64) -> f32 {
    let step = (rng.next_u32() >> 8) as f64 + 0.5;
    (limit * (step / f64::from(1_u32 << 23) - 1.0)) as f32
}

/// A multi-layer perceptron: hidden widths with `activation`, then `classes` logits, weights as by [`initialise`].
///
/// # Errors
/// [`Error::LayersDoNotFit`] or [`Error::Shape`] if a width is 0.
///
/// # Example
/// ```
/// # use rand_core::SeedableRng;
/// # use dosimeter_model::{zoo, Activation};
/// let mut rng = rand_chacha::ChaCha8Rng::from_seed([1; 32]);
/// let graph = zoo::mlp(600, &[128], 100, Activation::Tanh, &mut rng)?;
/// assert_eq!(graph.parameters().len(), 601 * 128 + 129 * 100);
/// # Ok::<(), dosimeter_model::Error>(())
/// ```
pub fn mlp<R: Rng + ?Sized>(
    inputs: usize,
    hidden: &[usize],
    classes: usize,
    activation: Activation,
    rng: &mut R,
) -> Result<Graph, Error> {
    let mut net = Net::of_input(&[inputs])?;
    for outputs in hidden {
        net.linear(*outputs)?;
        net.activation(activation)?;
    }
    net.linear(classes)?;
    Ok(net.initialised(rng))
}

/// LeNet-5 with tanh and average pooling; images of fewer than 32 rows are padded by 2 on every side.
///
/// # Source
/// LeCun, Bottou, Bengio and Haffner, *Gradient-Based Learning Applied to Document Recognition*, Proceedings of the IEEE
/// 1998, section II.B, with full connections in the second convolution and linear outputs.
///
/// # Errors
/// If the image (`[channels, height, width]`) is too small; so do the others.
pub fn lenet<R: Rng + ?Sized>(
    image: &[usize],
    classes: usize,
    rng: &mut R,
) -> Result<Graph, Error> {
    let tanh = Activation::Tanh;
    let padding = if image.get(1).is_some_and(|rows| *rows < 32) { 2 } else { 0 };
    let (pads, average) = ([padding; 2], Window::tiles(2));
    let mut net = Net::of_input(image)?;
    net.convolution(6, Window { before: pads, after: pads, ..kernel(5, 1) })?;
    net.activation(tanh)?;
    net.pooling(Pool::Average, average)?;
    net.convolution(16, kernel(5, 1))?;
    net.activation(tanh)?;
    net.pooling(Pool::Average, average)?;
    net.dense(&[120, 84], tanh, classes)?;
    Ok(net.initialised(rng))
}

/// Two convolutions (8 x 8, 16 channels; 4 x 4, 32 channels; both in steps of 2), overlapping max pooling behind each, one
/// hidden layer of 32: the network of most published DP-SGD results on MNIST, 26,010 parameters at 28 x 28 and 10 classes.
///
/// # Source
/// Papernot, Thakurta, Song, Chien and Erlingsson, *Tempered Sigmoid Activations for Deep Learning with Differential
/// Privacy*, AAAI 2021 (arXiv:2007.14191), Table 1.
///
/// # Errors
/// As [`lenet`].
pub fn small_cnn<R: Rng + ?Sized>(
    image: &[usize],
    classes: usize,
    activation: Activation,
    rng: &mut R,
) -> Result<Graph, Error> {
    let mut net = Net::of_input(image)?;
    net.convolution(16, Window { before: [3; 2], after: [3; 2], ..kernel(8, 2) })?;
    net.activation(activation)?;
    net.pooling(Pool::Max, kernel(2, 1))?;
    net.convolution(32, kernel(4, 2))?;
    net.activation(activation)?;
    net.pooling(Pool::Max, kernel(2, 1))?;
    net.dense(&[32], activation, classes)?;
    Ok(net.initialised(rng))
}

/// Six 3 x 3 convolutions (32, 32, 64, 64, 128, 128 channels), pooling behind every second, one hidden layer of 128: the
/// network of most published DP-SGD results on CIFAR-10, 550,570 parameters at 32 x 32 x 3 and 10 classes.
///
/// # Source
/// Papernot, Thakurta, Song, Chien and Erlingsson, *Tempered Sigmoid Activations for Deep Learning with Differential
/// Privacy*, AAAI 2021 (arXiv:2007.14191), Table 2; with maximum pooling in Tramer and Boneh, *Differentially Private
/// Learning Needs Better Features*, ICLR 2021 (arXiv:2011.11660).
///
/// # Errors
/// As [`lenet`].
pub fn cnn<R: Rng + ?Sized>(
    image: &[usize],
    classes: usize,
    activation: Activation,
    pool: Pool,
    rng: &mut R,
) -> Result<Graph, Error> {
    let mut net = Net::of_input(image)?;
    for channels in [32, 64, 128] {
        for _ in 0..2 {
            net.convolution(channels, Window::same(3))?;
            net.activation(activation)?;
        }
        net.pooling(pool, Window::tiles(2))?;
    }
    net.dense(&[128], activation, classes)?;
    Ok(net.initialised(rng))
}

/// `AlexNet` in one column, without dropout, for images of about 224 x 224.
///
/// # Source
/// Krizhevsky, *One weird trick for parallelizing convolutional neural networks*, 2014 (arXiv:1404.5997).
///
/// # Errors
/// As [`lenet`].
pub fn alexnet<R: Rng + ?Sized>(
    image: &[usize],
    classes: usize,
    rng: &mut R,
) -> Result<Graph, Error> {
    let (relu, overlapping) = (Activation::Relu, kernel(3, 2));
    let mut net = Net::of_input(image)?;
    let padded = |size: usize, stride: usize, pad: usize| Window {
        before: [pad; 2],
        after: [pad; 2],
        ..kernel(size, stride)
    };
    for (channels, window, pooled) in [
        (64, padded(11, 4, 2), true),
        (192, padded(5, 1, 2), true),
        (384, padded(3, 1, 1), false),
        (256, padded(3, 1, 1), false),
        (256, padded(3, 1, 1), true),
    ] {
        net.convolution(channels, window)?;
        net.activation(relu)?;
        if pooled {
            net.pooling(Pool::Max, overlapping)?;
        }
    }
    net.dense(&[4096, 4096], relu, classes)?;
    Ok(net.initialised(rng))
}

/// VGG-16: 13 convolutions of 3 x 3 in five blocks with max pooling, then `hidden` layers: `[4096, 4096]` for 224 x 224,
/// none for the CIFAR form at 32 x 32.
///
/// # Source
/// Simonyan and Zisserman, *Very Deep Convolutional Networks for Large-Scale Image Recognition*, ICLR 2015
/// (arXiv:1409.1556), configuration D.
///
/// # Errors
/// As [`lenet`].
pub fn vgg16<R: Rng + ?Sized>(
    image: &[usize],
    hidden: &[usize],
    classes: usize,
    rng: &mut R,
) -> Result<Graph, Error> {
    let relu = Activation::Relu;
    let mut net = Net::of_input(image)?;
    for (channels, convolutions) in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)] {
        for _ in 0..convolutions {
            net.convolution(channels, Window::same(3))?;
            net.activation(relu)?;
        }
        net.pooling(Pool::Max, Window::tiles(2))?;
    }
    net.dense(hidden, relu, classes)?;
    Ok(net.initialised(rng))
}

/// `MobileNet` v1 at full width, with group normalization (16 channels a group) where the paper has batch normalization,
/// so that it can be trained with differential privacy.
///
/// # Source
/// Howard et al., *`MobileNets`: Efficient Convolutional Neural Networks for Mobile Vision Applications*, 2017
/// (arXiv:1704.04861), Table 1.
///
/// # Errors
/// As [`lenet`].
pub fn mobilenet_v1<R: Rng + ?Sized>(
    image: &[usize],
    classes: usize,
    rng: &mut R,
) -> Result<Graph, Error> {
    let mut net = Net::of_input(image)?;
    let window = |stride: usize| Window { stride: [stride; 2], ..Window::same(3) };
    net.normalized(32, 1, window(2))?;
    for (channels, stride) in [
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        (512, 1),
        (512, 1),
        (512, 1),
        (512, 1),
        (512, 1),
        (1024, 2),
        (1024, 1),
    ] {
        let before = net.shape()[0];
        net.normalized(before, before, window(stride))?;
        net.normalized(channels, 1, Window::tiles(1))?;
    }
    let [_, height, width] = *net.shape() else { return Ok(net.initialised(rng)) };
    let all = [height, width];
    net.pooling(Pool::Average, Window { kernel: all, stride: all, ..Window::tiles(1) })?;
    net.dense(&[], Activation::Relu, classes)?;
    Ok(net.initialised(rng))
}

/// Fewest nodes that [`dgcnn`] can keep: its second convolution spans five pairs.
pub const LEAST_NODES: usize = 10;

/// Most nodes that [`dgcnn`] is built for where nothing else is said: its hidden layer then has 8 million weights.
pub const MOST_NODES: usize = 4096;

/// DGCNN, without its dropout: graph convolutions of 32, 32, 32 and 1 channels, sort pooling to `nodes` nodes, a convolution over
/// each node (16 channels), max pooling of pairs, a convolution over five (32 channels), one hidden layer of 128. For graphs whose nodes
/// have one of `features` one-hot features.
///
/// # Source
/// Zhang, Cui, Neumann and Chen, *An End-to-End Deep Learning Architecture for Graph Classification*, AAAI 2018, and the authors'
/// code (`muhanzhang/pytorch_DGCNN`).
///
/// # Errors
/// If `nodes` is below [`LEAST_NODES`], or there are no features.
pub fn dgcnn<R: Rng + ?Sized>(
    features: usize,
    nodes: usize,
    classes: usize,
    rng: &mut R,
) -> Result<Graph, Error> {
    let channels = vec![32, 32, 32, 1];
    let width: usize = channels.iter().sum();
    let row = |kernel: usize, stride: usize| Window {
        kernel: [1, kernel],
        stride: [1, stride],
        ..Window::tiles(1)
    };
    let mut net = Net::of_input(&[features])?;
    net.add(Layer::GraphConvolutions(GraphConvolutions { features, channels, nodes }))?;
    net.convolution(16, row(width, width))?;
    net.activation(Activation::Relu)?;
    net.pooling(Pool::Max, row(2, 2))?;
    net.convolution(32, row(5, 1))?;
    net.activation(Activation::Relu)?;
    net.dense(&[128], Activation::Relu, classes)?;
    Ok(net.initialised(rng))
}

/// A square kernel without padding.
const fn kernel(size: usize, stride: usize) -> Window {
    Window { stride: [stride; 2], ..Window::tiles(size) }
}

/// A graph that grows at its end.
struct Net(Graph);
impl Net {
    fn of_input(shape: &[usize]) -> Result<Self, Error> {
        Graph::of_input(shape).map(Self)
    }
    fn shape(&self) -> &[usize] {
        self.0.shape(self.0.output())
    }
    fn add(&mut self, layer: Layer) -> Result<(), Error> {
        let last = self.0.output();
        self.0.add(layer, &[last]).map(|_| ())
    }
    fn linear(&mut self, outputs: usize) -> Result<(), Error> {
        let inputs = self.shape().iter().product();
        self.add(Layer::Linear(Linear { inputs, outputs }))
    }
    fn activation(&mut self, activation: Activation) -> Result<(), Error> {
        self.add(Layer::Activation(activation))
    }
    fn pooling(&mut self, pool: Pool, window: Window) -> Result<(), Error> {
        self.add(Layer::Pooling(Pooling { pool, window }))
    }
    fn convolution(&mut self, outputs: usize, window: Window) -> Result<(), Error> {
        let channels = self.shape()[0];
        self.add(Layer::Convolution(Convolution {
            channels,
            outputs,
            groups: 1,
            window,
            bias: true,
        }))
    }
    /// A convolution without biases, group normalization, a rectifier.
    fn normalized(&mut self, outputs: usize, groups: usize, window: Window) -> Result<(), Error> {
        let (channels, bias) = (self.shape()[0], false);
        self.add(Layer::Convolution(Convolution { channels, outputs, groups, window, bias }))?;
        self.add(Layer::Normalization(Normalization {
            channels: outputs,
            groups: (outputs / 16).max(1),
            affine: Affine::Channel,
            stabilizer: 1e-5,
        }))?;
        self.activation(Activation::Relu)
    }
    /// Flattens, then linear layers.
    fn dense(
        &mut self,
        hidden: &[usize],
        activation: Activation,
        classes: usize,
    ) -> Result<(), Error> {
        let width = self.shape().iter().product();
        self.add(Layer::Reshape(Reshape { shape: vec![width] }))?;
        for outputs in hidden {
            self.linear(*outputs)?;
            self.activation(activation)?;
        }
        self.linear(classes)
    }
    fn initialised<R: Rng + ?Sized>(mut self, rng: &mut R) -> Graph {
        initialise(&mut self.0, rng);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    /// Published numbers of parameters; `MobileNet`'s with two parameters a channel for group normalization (4,231,976 with
    /// the two of batch normalization that are trained).
    #[test]
    fn architectures_have_the_published_numbers_of_parameters() -> Result<(), Error> {
        let mut rng = rand_chacha::ChaCha8Rng::from_seed([1; 32]);
        let count = |graph: Graph| graph.parameters().len();
        assert_eq!(count(lenet(&[1, 28, 28], 10, &mut rng)?), 61_706);
        assert_eq!(count(lenet(&[1, 32, 32], 10, &mut rng)?), 61_706);
        assert_eq!(count(small_cnn(&[1, 28, 28], 10, Activation::Tanh, &mut rng)?), 26_010);
        assert_eq!(count(cnn(&[3, 32, 32], 10, Activation::Tanh, Pool::Max, &mut rng)?), 550_570);
        assert_eq!(count(vgg16(&[3, 32, 32], &[], 10, &mut rng)?), 14_719_818);
        assert_eq!(count(alexnet(&[3, 224, 224], 1000, &mut rng)?), 61_100_840);
        assert_eq!(count(mobilenet_v1(&[3, 224, 224], 1000, &mut rng)?), 4_231_976);
        // By hand: 101 x 32 + 32 and so on; (97 + 1) 16; (80 + 1) 32; 11 places of 32 into 128; 128 into 3.
        let graph_part = 102 * 32 + 2 * 33 * 32 + 33;
        let rows = 98 * 16 + 81 * 32 + 353 * 128 + 129 * 3;
        assert_eq!(count(dgcnn(101, 30, 3, &mut rng)?), graph_part + rows);
        assert!(dgcnn(101, LEAST_NODES - 1, 3, &mut rng).is_err());
        assert!(alexnet(&[3, 20, 20], 10, &mut rng).is_err());
        assert!(lenet(&[28, 28], 10, &mut rng).is_err());
        Ok(())
    }

    /// Worked by hand: outputs x places x taps of each convolution, inputs x outputs of each linear layer.
    #[test]
    fn multiplications_count_every_place_of_a_convolution() -> Result<(), Error> {
        let mut rng = rand_chacha::ChaCha8Rng::from_seed([1; 32]);
        let lenet = lenet(&[1, 28, 28], 10, &mut rng)?;
        let linear = 400 * 120 + 120 * 84 + 84 * 10;
        assert_eq!(lenet.multiplications(), 6 * 784 * 25 + 16 * 100 * 150 + linear);
        let mlp = mlp(600, &[128], 100, Activation::Tanh, &mut rng)?;
        assert_eq!(mlp.multiplications(), 600 * 128 + 128 * 100);
        // Published: 569 million (Howard et al. 2017, Table 8).
        let mobilenet = mobilenet_v1(&[3, 224, 224], 1000, &mut rng)?;
        assert_eq!(mobilenet.multiplications() / 1_000_000, 568);
        Ok(())
    }

    #[test]
    fn weights_have_the_variance_of_their_fan_and_scales_are_one() -> Result<(), Error> {
        let mut rng = rand_chacha::ChaCha8Rng::from_seed([2; 32]);
        let graph = mobilenet_v1(&[3, 64, 64], 10, &mut rng)?;
        let variance = |i: usize, count: usize| {
            let weights = &graph.parameters()[graph.parameters_of(i)][..count];
            weights.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>() / count as f64
        };
        // 512 channels into 512 at every place, before a rectifier: 2 / 512. The relative error of a variance of n uniform
        // numbers is sqrt(0.8 / n): five of them are 0.9 %.
        let pointwise = graph.nodes().iter().position(
            |n| matches!(n.layer, Layer::Convolution(c) if c.channels == 512 && c.groups == 1),
        );
        assert!((variance(pointwise.unwrap_or(0), 512 * 512) * 256.0 - 1.0).abs() < 0.01);
        let Some(last) = graph.nodes().len().checked_sub(1) else { return Ok(()) };
        // 2 / (1024 + 10); five deviations of 10,240 numbers are 4.4 %.
        assert!((variance(last, 10_240) * 517.0 - 1.0).abs() < 0.045);
        assert!(graph.parameters()[graph.parameters_of(1)].starts_with(&[1.0; 32]));
        Ok(())
    }
}
