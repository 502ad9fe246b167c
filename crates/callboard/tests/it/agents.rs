//! Model agents and program agents: their runs, tools and exchanges.

pub(crate) mod callboard_tools;
mod codex_exec;
pub(crate) mod exchanges;
mod exchanges_model;
mod mcp;
pub(crate) mod model_agent;
mod program_approvals;
mod program_mcp;
mod program_stops;
mod programs;
mod shell;
mod stored_exchanges;
