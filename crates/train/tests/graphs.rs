//! Training on graphs, and randomized response on their edges.
#![expect(clippy::unwrap_used, reason = "tests")]
use dosimeter_data::graphs::{GraphSet, NodeFeature, NodeFeatures};
use dosimeter_data::{BitMatrix, Dataset, RecordId, Seed};
use dosimeter_privacy::{
    Accountant, Delta, Epsilon, Event, Generator, NoiseMultiplier, NoiseRng, NoiseSource, Relation,
    Sampler, Unit, accountants::Basic,
};
use dosimeter_testing::hoeffding_margin;
use dosimeter_train::local::EdgeRandomizedResponse;
use dosimeter_train::{
    Architecture, Arm, Error, Optimizer, Recipe, Speed, Training, Unwatched, fit, local,
};

/// Rings (class 0) and stars (class 1) of 5 to 16 nodes, and a node alone now and then.
fn rings_and_stars(graphs: usize) -> Dataset {
    let nodes: Vec<usize> =
        (0..graphs).map(|i| if i % 41 == 40 { 1 } else { 5 + i % 12 }).collect();
    let labels: Vec<u32> = (0..graphs).map(|i| (i % 2) as u32).collect();
    let names = vec!["ring".to_owned(), "star".to_owned()];
    let bare = GraphSet::without_edges("rings and stars", &nodes, labels, names).unwrap();
    let set = bare.with_edges(|graph, edges| {
        let last = graph.nodes() as u32 - 1;
        match (last, graph.label) {
            (0, _) => {}
            (_, 0) => {
                edges.extend((0..last).flat_map(|a| {
                    {
                        let closing = (a == 0).then_some((0, last));
                        [Some((a, a + 1)), closing]
                    }
                    .into_iter()
                    .flatten()
                }));
            }
            _ => edges.extend((1..=last).map(|b| (0, b))),
        }
    });
    Dataset::from_graphs(set.unwrap(), NodeFeatures::default()).unwrap()
}
const FAST: NoiseSource =
    NoiseSource { generator: Generator::ReplayableFast, sampler: Sampler::Float };

fn recipe(arm: Arm) -> Recipe {
    Recipe {
        architecture: Architecture::Dgcnn { nodes: None },
        optimizer: Optimizer::adam(0.003),
        batch_size: 20,
        epochs: 12,
        l2: 0.0,
        early_stopping: None,
        averaging: None,
        arm,
    }
}
fn trained(dataset: &Dataset, recipe: &Recipe) -> Result<dosimeter_train::Trained, Error> {
    let records: Vec<RecordId> = (0..200).map(RecordId).collect();
    let validation: Vec<RecordId> = (200..300).map(RecordId).collect();
    let training = Training {
        recipe,
        dataset,
        records: &records,
        nominal_size: 200,
        validation: &validation,
        seed: Seed::root(3),
        noise: FAST,
        speed: Speed::default(),
    };
    fit(&training, &Unwatched)
}

#[test]
fn a_graph_network_learns_with_and_without_noise() {
    let dataset = rings_and_stars(300);
    let plain = recipe(Arm::NoDp);
    let model = trained(&dataset, &plain).unwrap();
    assert!(model.validation.unwrap().accuracy() > 0.95, "{:?}", model.validation);
    // Degrees from 0 to 15, which none of a graph of 16 nodes exceeds.
    assert_eq!(model.graph.inputs(), 16);
    assert_eq!(trained(&dataset, &plain).unwrap().graph, model.graph);
    let noise_multiplier = NoiseMultiplier::new(0.7).unwrap();
    let private = recipe(Arm::Dp { clipping_norm: 1.0, noise_multiplier });
    let model = trained(&dataset, &private).unwrap();
    assert!(model.validation.unwrap().accuracy() > 0.8, "{:?}", model.validation);
    assert_eq!(model.ledger.events()[0].unrepeated().1, 120);
    assert!(model.history.iter().all(|epoch| epoch.non_finite == 0));
}

#[test]
fn networks_and_records_of_another_kind_are_refused() {
    let graphs = rings_and_stars(300);
    let perceptron =
        Architecture::Mlp { hidden: vec![4], activation: dosimeter_model::Activation::Tanh };
    let plain = recipe(Arm::NoDp);
    let wrong = Recipe { architecture: perceptron, ..plain };
    let error = trained(&graphs, &wrong).unwrap_err();
    assert_eq!(error.to_string(), "the network takes numbers, the data set has graphs");
    let bits = BitMatrix { rows: 300, width: 8, words: vec![5; 300] };
    let table = Dataset::from_bits("bits", bits, vec![0; 300], 2).unwrap();
    let error = trained(&table, &plain).unwrap_err();
    assert_eq!(error.to_string(), "the network takes graphs, the data set has numbers");
    let few = Recipe { architecture: Architecture::Dgcnn { nodes: Some(9) }, ..plain };
    assert!(trained(&graphs, &few).unwrap_err().to_string().contains("at least 10, got 9"));

    let epsilon = Epsilon::new(1.0).unwrap();
    let rng = &mut NoiseRng::experiment([1; 32]);
    let error = local::randomize(&graphs, epsilon, rng).unwrap_err();
    assert!(error.to_string().contains("edge_randomized_response"), "{error}");
    let error = EdgeRandomizedResponse { epsilon }.randomize(&table, rng).unwrap_err();
    assert!(error.to_string().contains("needs graphs"), "{error}");
    let none = EdgeRandomizedResponse { epsilon: Epsilon::new(0.0).unwrap() };
    assert!(none.randomize(&graphs, rng).is_err());
    // 100,000 nodes are 5e9 pairs; 60 graphs of 10,000 nodes 3e9, of which at 1 nat 27 % become edges.
    for (nodes, says) in [(vec![100_000], "92,682 nodes"), (vec![10_000; 60], "4 GiB")] {
        let labels = vec![0; nodes.len()];
        let names = vec!["only".to_owned()];
        let set = GraphSet::without_edges("large", &nodes, labels, names).unwrap();
        let large = Dataset::from_graphs(set, NodeFeatures::default()).unwrap();
        let error = EdgeRandomizedResponse { epsilon }.randomize(&large, rng).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Kept with probability 3/4: so many edges stay and so many pairs become edges.
#[test]
fn pairs_answer_truly_as_often_as_epsilon_says() {
    let epsilon = Epsilon::new(3_f64.ln()).unwrap();
    let mechanism = EdgeRandomizedResponse { epsilon };
    let (nodes, graphs) = (40_usize, 300);
    let names = vec!["only".to_owned()];
    let bare = GraphSet::without_edges("half", &vec![nodes; graphs], vec![0; graphs], names);
    let half = bare.unwrap().with_edges(|_, edges| {
        let pairs = (0..40).flat_map(|a| (a + 1..40).map(move |b| (a, b)));
        edges.extend(pairs.filter(|(a, b)| (a + b) % 2 == 0));
    });
    let features = NodeFeatures { feature: Some(NodeFeature::Degree), most_degree: Some(7) };
    let dataset = Dataset::from_graphs(half.unwrap(), features).unwrap();
    let mut rng = NoiseRng::experiment([9; 32]);
    let (randomized, ledger) = mechanism.randomize(&dataset, &mut rng).unwrap();
    let (before, after) = (dataset.graphs().unwrap(), randomized.graphs().unwrap());
    let (mut kept, mut appeared, mut edges, mut others) = (0, 0, 0_u32, 0_u32);
    for (old, new) in before.set().graphs().zip(after.set().graphs()) {
        assert_eq!(new.nodes(), nodes);
        for a in 0..nodes {
            assert!(new.neighbours(a).is_sorted() && !new.neighbours(a).contains(&(a as u32)));
            for b in a + 1..nodes {
                let [was, is] = [old, new].map(|g| g.neighbours(a).contains(&(b as u32)));
                assert_eq!(is, new.neighbours(b).contains(&(a as u32)), "one-sided");
                if was {
                    edges += 1
                } else {
                    others += 1
                }
                kept += u32::from(was && is);
                appeared += u32::from(!was && is);
            }
        }
    }
    let share = |count: u32, of: u32| f64::from(count) / f64::from(of);
    assert!((share(kept, edges) - 0.75).abs() < hoeffding_margin(edges));
    assert!((share(appeared, others) - 0.25).abs() < hoeffding_margin(others));
    // Degrees are those of the new edges, capped.
    assert!(after.node_features(0).all(|f| f == 7));
    assert_eq!((&randomized.labels, after.features()), (&dataset.labels, 8));
    // 780 pairs at ln 3 for a whole graph, ln 3 for an edge.
    let upper = |ledger| {
        Basic.epsilon_upper(ledger, Relation::Local, Delta::new(0.0).unwrap()).unwrap().get()
    };
    let whole = 780.0 * 3_f64.ln();
    assert!((upper(&ledger) - whole).abs() < 1e-9 && ledger.unit() == Unit::FeatureVector);
    let edge = mechanism.for_an_edge();
    assert!((upper(&edge) - 3_f64.ln()).abs() < 1e-12 && edge.unit() == Unit::Edge);
    // As many edges as not: randomizing leaves the density.
    let expected = mechanism.expect(&dataset).unwrap();
    assert_eq!((expected.pairs, expected.most_pairs), (780 * 300, 780));
    let densities = expected.densities();
    assert!((densities[0] - 380.0 / 780.0).abs() < 1e-12);
    // Three quarters of 380 stay, a quarter of 400 appear.
    assert!((densities[1] - 385.0 / 780.0).abs() < 1e-12);
}

/// The ledger is that of the largest graph; a node alone has nothing to answer; no other node stays without an edge.
#[test]
fn every_node_but_one_alone_in_its_graph_has_an_edge() {
    let dataset = rings_and_stars(300);
    let sparse = EdgeRandomizedResponse { epsilon: Epsilon::new(6.0).unwrap() };
    let (randomized, ledger) =
        sparse.randomize(&dataset, &mut NoiseRng::replayable([2; 32])).unwrap();
    let set = randomized.graphs().unwrap().set();
    for graph in set.graphs() {
        let alone = |node: &usize| graph.neighbours(*node).is_empty();
        assert_eq!((0..graph.nodes()).filter(alone).count(), usize::from(graph.nodes() == 1));
    }
    assert!(matches!(
        ledger.events()[0].unrepeated(),
        (Event::RandomizedResponse { categories: 2, .. }, 120)
    ));
    let again = sparse.randomize(&dataset, &mut NoiseRng::replayable([2; 32])).unwrap().0;
    assert_eq!(again, randomized);
    // With next to no noise nothing changes.
    let none = EdgeRandomizedResponse { epsilon: Epsilon::new(60.0).unwrap() };
    let (same, _) = none.randomize(&dataset, &mut NoiseRng::replayable([3; 32])).unwrap();
    assert_eq!(same.inputs, dataset.inputs);
}
