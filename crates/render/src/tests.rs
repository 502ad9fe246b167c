//! Properties of the page on a corpus of logs and on random ones, and examples.

mod approvals;
mod badges;
mod bodies;
mod cards;
mod corpus;
mod files;
mod laws;
mod parts;
mod programs;
mod search;
mod words;
