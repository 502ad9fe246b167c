//! Kinds of strings in agents' lines that are not shown to people, with reasons.

type Reasons = &'static [(&'static str, &'static [&'static str])];

/// Irrelevant strings, given by the beginning of their path; after a `*` by its end; after a `=` by
/// the whole path.
#[rustfmt::skip]
pub(super) const OF_NO_USE: Reasons = &[
    ("names of things, for machines", &[
        "*.id", "*Id", "*_id", "*uuid", "*uuids", "*.type", "*.subtype", "*_type", "*.kind",
        "*_kind", "*activeFlags", "*.method", "*.role", "*.object", "*.status", "*.state", "*.source", "*.producer",
        "*.signature", "*[].data", "*ThreadIds", "*customType", "*extension_error:.event", "*Signature", "*thought_signature", "*.timestamp", "*fingerprint", "*.revision",
    ]),
    ("which model answers, and how it is paid for", &[
        "*.model", "*.responseModel", "*service_tier", "*.speed", "*.api", "*.provider",
        "*.canonicalModel", "*.costBasis", "*modelProvider", "*reasoningEffort", "*thinkingLevel", "*thinking_display", "*fast_mode_state",
        "*fast_mode_disabled_reason", "thinking_level_changed:",
    ]),
    ("why the model stopped: the step's finish reason says so in our words", &[
        "*stop_reason", "*stopReason", "*StopReason", "*finish_reason", "*finishReason",
        "*terminal_reason",
    ]),
    ("what kind of error it is: our code says so", &[
        "*.api_error", "assistant:.error", "*.api_error_params.cut", "*codexErrorInfo",
        "*.error.code", "system/api_retry:.error",
    ]),
    ("an answer to what the recorder asked for itself, which we never ask", &[
        "control_response:", "response:", ":.result", ":.error.message", "session_info_changed:",
        "queue_update:.followUp",
    ]),
    ("what the program is and can do, and where it keeps its things", &[
        "system/init:", "thread/started:", "remoteControl/", "*.cwd", "*itemsView", "*rootTurnId",
        "*.output_file",
    ]),
    ("a mode that was changed by whoever recorded it, between two runs", &[
        "system/status:.permissionMode",
    ]),
    ("of use to those who set the program up; no word about this conversation", &[
        "configWarning:", "deprecationNotice:",
    ]),
    ("the tool's name for people, who see its own", &["*.display_name"]),
    ("how it could be answered: we have our own words", &[
        "control_request:.request.permission_suggestions",
        "*availableDecisions", "*execpolicy_amendment", "*proposedExecpolicyAmendment",
        "mcpServer/elicitation/request:.params._meta", "mcpServer/elicitation/request:.params.mode",
        "mcpServer/elicitation/request:.params.message", "extension_ui_request:.title",
    ]),
    ("for a server of tools in the same channel, which we do not offer", &[
        "control_request:.request.message.params",
    ]),
    ("who allowed a call: the log says who decided", &["user:.tool_result_meta"]),
    ("what a command does, as Codex understands it: the command is there", &[
        "item/started:.params.item.commandActions", "item/completed:.params.item.commandActions",
    ]),
    ("whether a text is commentary: it stands where it belongs", &["*.phase"]),
    ("a picture: it is saved, or shown from the result", &["=item/completed:.params.item.result"]),
    ("for the program's own screen", &[
        "extension_ui_request:.statusKey", "extension_ui_request:.statusText",
    ]),
    ("what a text refers to: the text is there", &["stream_event:.event.delta.citation"]),
    ("our word for the tool is the model's own", &["item/started:.params.item.tool", "item/completed:.params.item.tool"]),
    ("a patch that the call's arguments say too", &[
        "turn/diff/updated:",
    ]),
    ("what a sub-agent does, which its calls say", &["system/task_progress:.description"]),
    ("where all of the output is, of which we have all", &[
        "*.details.fullOutputPath", "*.truncation.truncatedBy",
    ]),
    ("what is asked about a call, which is in the log", &[
        "extension_ui_request:.message", "extension_ui_request:.placeholder",
    ]),
    ("why the conversation was shortened; that it was is said", &[
        "compaction_start:.reason", "compaction_end:.reason", "system/status:.compact_result",
        "system/compact_boundary:.compact_metadata.trigger",
    ]),
    ("what the model keeps of a conversation that people still have", &[
        "compaction_end:.result.summary", "=user:.message.content",
    ]),
];

/// Ignored lines: the recording, a text that they contain, and the reason.
pub(super) const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "made_up/codex/said-from-elsewhere",
        "said in another window",
        "nobody but us talks to a program that we have started",
    ),
    ("codex/app-two-threads", "01a1e0a2-6429", "another conversation of the recorder's"),
    ("claude/edit-allow", "partial_json", "Claude Code put the arguments into its own order"),
    ("openai/vector-data-after-done", "ZZ", "the answer had ended"),
    ("openai/vector-thinking-tags", "think>", "tags are no words"),
    (
        "pi/0.73/steer",
        "SCENARIO:context follow up",
        "the recorder let Pi keep a queue; we never do",
    ),
    ("pi/1.5/steer", "SCENARIO:context follow up", "the recorder let Pi keep a queue; we never do"),
];

/// Strings that the transcript states in other words, given by the beginning of a line.
#[rustfmt::skip]
pub(super) const SAID_OTHERWISE: Reasons = &[
    ("the prompt of Pi's own, which the recorder has left out", &["[elided]"]),
    ("that it was stopped: the run and the call are marked", &[
        "[Request interrupted by user", "Command aborted", "Operation aborted",
        "Request was aborted", "This operation was aborted", "[ede_diagnostic]",
        "User rejected tool use", "The user doesn't want to proceed with this tool use",
    ]),
    ("that it failed, and how", &[
        "Exit code ", "Error: Exit code ", "Command exited with code ",
    ]),
    ("an error is a line, and this one a sermon to the model", &[
        "Permission to use Write has been denied", "Error: Permission to use Write has been denied",
    ]),
    ("what the model is told of a result that is there in full", &[
        "<persisted-output>", "</persisted-output>", "Preview (first ", "File created successfully at",
        "The file /workspace/", "Your questions have been answered", "Async agent launched",
        "Do NOT Read or tail this file", "Do not duplicate this agent's work",
        "The agent is working in the background", "agentId: ", "output_file: ",
    ]),
    ("that a person said no: the decision is there", &["user rejected MCP tool call"]),
    ("that it asks its model again, which all programs say in one way", &["Reconnecting... "]),
    ("that nothing was printed", &["(no output)"]),
    ("that the program told us of no more than a part", &["[Showing lines ", "Output too large"]),
];
