//! The fixed texts of the demo agent.

use super::call::Call;

pub(super) const GOING_ON: &str = "I'll do it again, from the beginning.";

pub(super) const BEFORE_BREAKING: &str =
    "All right. This is the beginning of an answer, and it looks as if it would go well, but then";

pub(super) const BROKEN: &str = "The model service broke off in the middle of its answer. \
     This is the demo agent: it did so because you asked it to break.";

pub(super) const HELD: &str = "The model service answers again: this time nothing broke.";

pub(super) const HELLO: &str = "Hello! I am the demo agent. ";

pub(super) const HELP: &str = "\
I have no model behind me, only rules, but the tools I use are real. Try one of these:

- `what time is it in Paris and Tokyo`: two calls at once
- `list the files` or `list files in src`
- `read README.md`
- `search for TODO` or `find \"some words\" in docs`
- `run ls -l`: all that follows *run* is a command, and you may be asked before it runs
- `write \"some words\" to notes.txt`: asks you before it writes
- `list the agents`: who else is there
- `note: tea is ready`: puts a note into the conversation
- `ask claude: what is in this folder?`, or `ask claude in the background: ...`: asks another agent
- `think about breakfast`: thoughts first, then the answer
- `tell me a story`: a long answer, good for trying *Stop*
- `write a report about tea`: headings, a table, a list and code
- `break`: fails the way a model service does
- `help`: this list

You can ask for several things at once, such as `list the files, then read README.md`.";

/// Returns the commentary of the demo agent before a step's tool calls. `step` counts from 1.
pub(super) fn commentary(calls: &[Call], step: u32) -> String {
    let opening = if step == 1 { "Let me" } else { "Next, let me" };
    match calls {
        [Call::ListFiles { path }] if path == "." && step == 1 => {
            "Let me look at the files first.".to_owned()
        }
        [Call::ListFiles { path }] if path == "." => format!("{opening} look at the files."),
        [Call::ListFiles { path }] => format!("{opening} see what is in `{path}`."),
        [Call::ReadFile { path }] => format!("{opening} open `{path}` and read it."),
        [Call::SearchFiles { query, path: None }] => {
            format!("{opening} search the files for “{query}”.")
        }
        [Call::SearchFiles { query, path: Some(path) }] => {
            format!("{opening} search `{path}` for “{query}”.")
        }
        [Call::WriteFile { path, .. }] => format!("{opening} write that to `{path}`."),
        [Call::Shell { command }] if command.contains('`') => format!("{opening} run that."),
        [Call::Shell { command }] => format!("{opening} run `{}`.", command.replace('\n', " ")),
        [Call::ListAgents] => format!("{opening} see who is there."),
        [Call::Note { .. }] => format!("{opening} note that."),
        [Call::AskAgent { agent, in_background: false, .. }] => format!("{opening} ask {agent}."),
        [Call::AskAgent { agent, in_background: true, .. }] => {
            format!("{opening} ask {agent}, and go on meanwhile.")
        }
        [Call::ClientTool { name, .. }] => format!("{opening} use `{name}`."),
        [Call::Time(place)] if place.zone.is_none() => format!("{opening} look at the clock."),
        [Call::Time(place)] => format!("{opening} check what time it is in {}.", place.name),
        several => format!("{opening} check the time in {} at once.", names(several)),
    }
}

fn names(calls: &[Call]) -> String {
    let names: Vec<&str> = calls
        .iter()
        .filter_map(|it| match it {
            Call::Time(place) => Some(place.name.as_str()),
            Call::ListFiles { .. } | Call::ReadFile { .. } | Call::SearchFiles { .. } => None,
            Call::WriteFile { .. } | Call::Shell { .. } => None,
            Call::ListAgents | Call::Note { .. } | Call::AskAgent { .. } => None,
            Call::ClientTool { .. } => None,
        })
        .collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => "several places".to_owned(),
    }
}

pub(super) fn thought(about: &str) -> String {
    format!(
        "The user wants me to think about {about}. \
         I should start with what I know for certain, which is little: I am a set of rules. \
         Still, there are always two sides to look at. \
         On the one hand {about} may be simpler than it seems at first. \
         On the other hand the simple view usually leaves out the part that matters. \
         I could go round in circles here, so I will settle for one honest sentence."
    )
}

pub(super) fn conclusion(about: &str) -> String {
    format!(
        "I have thought about {about}. My conclusion: look at the simple side first, and then ask \
         what it leaves out. A real model would have more to say; you can read my thoughts above."
    )
}

pub(super) fn story(about: Option<&str>) -> String {
    let subject = about.unwrap_or("a small lighthouse at the edge of the map");
    format!(
        "**The keeper of the log**

Once there was a keeper whose whole work was to write down what happened. The ships came in, and \
she wrote it down. The fog came in, and she wrote that down too. She never went back to change a \
line, for the harbour had one rule older than the harbour itself: what stands in the book, stands.

One evening a stranger knocked and asked her about {subject}. She did not know the answer, but she \
did not say so at once. She opened the book at the first page and began to read aloud. The \
stranger sat down. Outside the rain began, then stopped, then began again, and still she read, \
line after line, in the order in which things had happened.

Around midnight the lamp went out. It had never done that before. In the dark the stranger asked \
whether the story was lost now. \"No,\" said the keeper, \"only interrupted.\" She felt her way to \
the shelf, found a match, lit the lamp, and put her finger on the very line where she had \
stopped. Not a word was missing.

In the morning they reached the last page. \"And {subject}?\" asked the stranger. The keeper \
turned the book around, and there it was, in her own hand, written while she was reading: *a \
stranger came, asked, and listened until the end.* The stranger laughed, and then was quiet for \
a while, and then asked if there was work for a second keeper.

\"It is dull work,\" said the keeper. \"You may not leave anything out, not even the days on \
which nothing happens. You may not write what should have happened. And when you have made a \
mistake, you write underneath that it was one, and go on.\" The stranger thought about this. \
Outside a gull had found something on the stones and was telling the whole coast. \"Is that in the \
book as well?\" asked the stranger. The keeper dipped her pen. \"It is now,\" she said.

There was. There always is. If you walk out to the point on a clear night you can see two lamps in \
the window now, and if you knock, somebody will open, and write it down."
    )
}

pub(super) fn report(about: Option<&str>) -> String {
    let subject = about.unwrap_or("the demo agent");
    format!(
        "# Report: {subject}

This report was written by rules, not by a model. It says little about **{subject}**, but it shows \
what an answer can look like: headings, a table, lists, code and a link, all of it streamed word \
by word.

## Summary

- The subject is *{subject}*, and it was looked at from **three** sides.
- Nothing was found that would stop anybody from going on.
- The numbers below are made up, but they add up.

## Findings

| Side | What was looked at | Score |
|:-----|:-------------------|------:|
| Form | How {subject} looks at first sight | 7 |
| Use | What one can do with it | 9 |
| Limits | Where it ends | 5 |
| **Sum** | | **21** |

A table tells the score; it does not tell the reason. *Form* lost points because nobody agreed on \
a colour. *Use* would have had ten points if ten had been allowed. *Limits* is where the work is.

### What stood out

**Form** is the first thing that people mention, and the first that they forget. **Use** is what \
they come back for: of every ten who tried {subject}, nine tried it again, and the tenth was only \
late. **Limits** are seldom mentioned at all, which is a pity, because knowing where a thing ends \
is half of knowing what it is.

## Method

The score of a side is the number of good things about it, less the number of bad ones. In code:

```rust
/// Adds up what speaks for a side and what speaks against it.
fn score(good: &[&str], bad: &[&str]) -> i64 {{
    good.len() as i64 - bad.len() as i64
}}

fn main() {{
    let form = score(&[\"clear\", \"small\", \"quick\"], &[\"grey\"]);
    println!(\"form: {{form}}\");
}}
```

Everything here is plain Markdown; the [CommonMark site](https://commonmark.org/) explains what \
each sign means.

## What to do next

1. Read this report once more, slowly.
2. Do the open items of this list:
   - [x] Choose a subject
   - [x] Write the report
   - [ ] Replace the demo agent by a real one
3. Ask again.

> A report is finished when nothing is left to strike out.

That is all there is to say about {subject} for now. Choose a real agent for your next session, and \
the same page will show what it thinks, which tools it calls and what they return."
    )
}
