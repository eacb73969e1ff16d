//! x
mod decode;
mod deliver;
mod reflector;
