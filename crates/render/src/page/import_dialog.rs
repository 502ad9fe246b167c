//! The dialog that imports conversations from files.

use maud::{Markup, html};

pub(crate) fn dialog(formats: &[(&str, &str)]) -> Markup {
    html! {
        dialog #import aria-labelledby="import-title" {
            form method="dialog" {
                h2 #import-title { "Import conversations" }
                label {
                    span { "Format" }
                    select #format { @for (word, name) in formats { option value=(word) { (name) } } }
                }
                label { span { "Files" } input #transcripts type="file" accept=".jsonl,.json" multiple; }
                p.hint {
                    "Claude Code keeps them in " code { "~/.claude/projects" } ", Codex in "
                    code { "~/.codex/sessions" } ", Pi in " code { "~/.pi/agent/sessions" }
                    ". Duplicates are skipped. Importing never starts an agent."
                }
                ul #imported role="status" {}
                div.buttons { button.primary type="submit" { "Done" } }
            }
        }
    }
}
