//! Runs: approvals, grants, cancelling and the message queue.

mod approvals;
mod cancel;
mod grants;
mod queue;
mod queue_model;
