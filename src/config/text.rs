//! Text in quotes, for messages.

pub(super) use crate::go::quote::quote;
