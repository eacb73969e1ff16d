//! What `/metrics` says after a scripted scenario.
