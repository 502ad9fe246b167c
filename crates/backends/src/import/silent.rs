//! Entries of the files that are not shown. The lists are explicit, so that entries of later versions are
//! shown.

/// Types of Claude Code's lines for its own use, which are not imported: prompts, requests, counts
/// and settings.
pub(super) const OF_CLAUDE: &[&str] = &[
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attribution-snapshot",
    "content-replacement",
    "cost-state",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "speculation-accept",
    "summary",
    "tag",
    "task-summary",
    "tools-used",
    "worktree-state",
];

/// Subtypes of Claude Code's `system` lines that are not imported.
pub(super) const OF_CLAUDES_SYSTEM: &[&str] = &[
    "agents_killed",
    "api_metrics",
    "away_summary",
    "bridge_status",
    "memory_saved",
    "microcompact_boundary",
    "scheduled_task_fire",
    "stop_hook_summary",
    "turn_duration",
];

/// Types of Codex's lines about its own state and counts, which are not imported.
pub(super) const OF_CODEX: &[&str] = &["token_usage_record", "world_state"];

/// Types of Codex's events that are not imported, because its items or the model service's messages
/// repeat them.
pub(super) const OF_CODEXS_EVENTS: &[&str] = &[
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "context_compacted",
    "dynamic_tool_call_request",
    "dynamic_tool_call_response",
    "exec_command_begin",
    "exec_command_end",
    "image_generation_end",
    "item_started",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "patch_apply_end",
    "thread_name_updated",
    "thread_settings_applied",
    // A `token_count` event without counts.
    "token_count",
    "turn_diff",
    // Files with these have items too.
    "user_message",
    "view_image_tool_call",
    "web_search_begin",
    "web_search_end",
];

/// Types of Codex's items for the model service that are not imported, because they are not part of
/// the conversation.
pub(super) const OF_CODEXS_ITEMS: &[&str] =
    &["additional_tools", "compaction", "ghost_snapshot", "tool_search_call", "tool_search_output"];

/// Types of Pi's entries that are not imported: settings, marks of extensions, and replacements for
/// removed messages.
pub(super) const OF_PI: &[&str] = &[
    "branch_summary",
    "context_edit",
    "custom",
    "custom_message",
    "label",
    "session",
    "thinking_level_change",
];

/// Roles of Pi's messages for the model alone, which are not imported.
pub(super) const OF_PIS_ROLES: &[&str] =
    &["branchSummary", "compactionSummary", "custom", "system"];
