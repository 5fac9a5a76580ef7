//! Training with and without differential privacy: where privacy, data and model meet.
