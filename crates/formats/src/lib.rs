//! Views of a transcript in other people's words, as pure and total functions.
//!
//! The vocabulary of the seeds, of model providers and of front-end libraries lives here and
//! nowhere else. One module a format.

pub mod callboard;
pub mod openai;
