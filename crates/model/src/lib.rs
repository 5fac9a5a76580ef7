//! Differentiable functions with per-record gradients: layers, graphs, losses. Knows neither data sets nor privacy.
