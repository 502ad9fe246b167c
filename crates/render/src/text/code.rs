//! Source code with syntax highlighting by class.
//!
//! The grammars come from syntect and are mapped to the few token classes of the stylesheet. They are loaded
//! on first use, and each used grammar keeps about ten megabytes: a server calls [`unload_unused`]
//! periodically.

mod languages;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maud::{Markup, PreEscaped};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::html::escape::{escaped, push_escaped};

pub use languages::Language;

/// Maximum number of bytes of code that is highlighted: the slowest grammars take a second for 200
/// KB.
const MAX_CODE: usize = 64 << 10;
/// Maximum number of bytes of a line in code that is highlighted: grammars are slow on minified
/// code.
const MAX_LINE: usize = 4 << 10;

/// Maximum number of bytes of a language name.
const MAX_WORD: usize = 24;

/// CSS class of the tokens of each grammar scope; the longest matching scope wins. An empty class
/// excludes a scope from a wider one.
const CLASSES: &[(&str, &str)] = &[
    ("comment", "comment"),
    ("constant", "constant"),
    ("constant.character.escape", "constant"),
    ("constant.numeric", "number"),
    ("entity.name", "function"),
    ("entity.name.class", "type"),
    ("entity.name.enum", "type"),
    ("entity.name.function", "function"),
    ("entity.name.impl", "type"),
    ("entity.name.interface", "type"),
    ("entity.name.module", "type"),
    ("entity.name.namespace", "type"),
    ("entity.name.section", "heading"),
    ("entity.name.struct", "type"),
    ("entity.name.tag", "tag"),
    ("entity.name.trait", "type"),
    ("entity.name.type", "type"),
    ("entity.other.attribute-name", "attribute"),
    ("entity.other.inherited-class", "type"),
    ("keyword", "keyword"),
    ("keyword.operator", "operator"),
    ("keyword.operator.word", "keyword"),
    ("markup.deleted", "deleted"),
    ("markup.heading", "heading"),
    ("markup.inserted", "inserted"),
    ("meta.annotation", "attribute"),
    ("meta.diff.header", "heading"),
    ("meta.diff.range", "heading"),
    ("meta.interpolation", ""),
    ("meta.template.expression", ""),
    ("punctuation", ""),
    ("punctuation.definition.comment", "comment"),
    ("punctuation.definition.deleted", "deleted"),
    ("punctuation.definition.heading", "heading"),
    ("punctuation.definition.inserted", "inserted"),
    ("punctuation.definition.string", "string"),
    ("punctuation.definition.variable", "variable"),
    ("storage", "keyword"),
    ("storage.type.annotation", "attribute"),
    ("string", "string"),
    ("support.class", "type"),
    ("support.constant", "constant"),
    ("support.function", "function"),
    ("support.macro", "function"),
    ("support.type", "type"),
    ("variable.annotation", "attribute"),
    ("variable.function", "function"),
    ("variable.language", "constant"),
    ("variable.other.constant", "constant"),
    ("variable.other.readwrite", "variable"),
    ("variable.parameter", "variable"),
];

/// Returns the language that the info string of a Markdown fence names, as in ` ```rust `.
pub fn language_of_fence(info: &str) -> Option<Language> {
    Language::named(word_of_fence(info))
}

/// Returns the first word of a Markdown fence's info string; empty if it is too long for a language
/// name.
pub(crate) fn word_of_fence(info: &str) -> &str {
    let word = info.split([' ', '\t', ',', '{']).next().unwrap_or_default();
    let word = word.trim_start_matches('.');
    if word.len() <= MAX_WORD { word } else { "" }
}

/// Returns the language of a file by its name or extension; `None` if it is unknown.
pub fn language_of_file(path: &str) -> Option<Language> {
    let name = path.rsplit(['/', '\\']).next()?;
    Language::named(name).or_else(|| Language::named(name.rsplit_once('.')?.1))
}

/// Highlights code as HTML: tokens are in `<span class="hl-...">`. Code that is too long stays
/// plain.
pub fn highlight(code: &str, language: Language) -> Markup {
    let is_readable = code.len() <= MAX_CODE && code.lines().all(|it| it.len() <= MAX_LINE);
    let tokens = if is_readable { Highlighter::get().tokens(code, language) } else { None };
    PreEscaped(tokens.unwrap_or_else(|| escaped(code)))
}

/// Draws the content of a file as a code block, highlighted if the file's name identifies the
/// language.
pub fn file(path: &str, content: &str) -> Markup {
    let language = language_of_file(path);
    let class = language.map(|it| format!("language-{}", it.name()));
    let content =
        language.map_or_else(|| PreEscaped(escaped(content)), |it| highlight(content, it));
    maud::html! { pre { code class=[class] { (content) } } }
}

/// Frees the syntax grammars if none was used since the last call. The next highlighting loads them
/// again.
pub fn unload_unused() {
    let mut loaded = loaded();
    if !std::mem::take(&mut loaded.is_used) {
        loaded.highlighter = None;
    }
}

struct Loaded {
    highlighter: Option<Arc<Highlighter>>,
    is_used: bool,
}

fn loaded() -> MutexGuard<'static, Loaded> {
    static LOADED: Mutex<Loaded> = Mutex::new(Loaded { highlighter: None, is_used: false });
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Highlighter {
    syntaxes: SyntaxSet,
    classes: Vec<(Scope, &'static str)>,
}

impl Highlighter {
    fn load() -> Self {
        let scope = |(name, class): &(&str, &'static str)| Some((Scope::new(name).ok()?, *class));
        let mut classes: Vec<_> = CLASSES.iter().filter_map(scope).collect();
        classes.sort_by_key(|(scope, _)| std::cmp::Reverse(scope.len()));
        Self { syntaxes: two_face::syntax::extra_newlines(), classes }
    }

    fn get() -> Arc<Self> {
        let mut loaded = loaded();
        loaded.is_used = true;
        loaded.highlighter.get_or_insert_with(|| Arc::new(Self::load())).clone()
    }

    /// Highlights code as HTML; `None` if the grammar is missing or fails.
    fn tokens(&self, code: &str, language: Language) -> Option<String> {
        let syntax = self.syntaxes.find_syntax_by_name(language.syntax())?;
        let mut state = ParseState::new(syntax);
        let mut spans = Spans { out: String::with_capacity(code.len() * 2), open: "" };
        let mut scopes = ScopeStack::new();
        let mut known = HashMap::new();
        for line in code.split_inclusive('\n') {
            let mut from = 0;
            for (at, op) in state.parse_line(line, &self.syntaxes).ok()? {
                spans.push(&line[from..at], self.class(&scopes, &mut known));
                scopes.apply(&op).ok()?;
                from = at;
            }
            spans.push(&line[from..], self.class(&scopes, &mut known));
        }
        Some(spans.finish())
    }

    /// Returns the CSS class of the innermost scope that has one; empty if none has.
    fn class(
        &self,
        scopes: &ScopeStack,
        known: &mut HashMap<Scope, Option<&'static str>>,
    ) -> &'static str {
        let class_of = |scope: Scope| {
            let rule = self.classes.iter().find(|(rule, _)| rule.is_prefix_of(scope));
            rule.map(|(_, class)| *class)
        };
        let mut of_stack = scopes.as_slice().iter().rev();
        of_stack
            .find_map(|it| *known.entry(*it).or_insert_with(|| class_of(*it)))
            .unwrap_or_default()
    }
}

/// Writer of highlighted tokens as `<span>` elements; adjacent tokens of the same class share one.
struct Spans {
    out: String,
    open: &'static str,
}

impl Spans {
    fn push(&mut self, text: &str, class: &'static str) {
        if text.is_empty() {
            return;
        }
        // White space looks the same in every class.
        let is_blank = text.bytes().all(|it| it.is_ascii_whitespace());
        if class != self.open && !is_blank {
            self.close();
            if !class.is_empty() {
                self.out.push_str("<span class=\"hl-");
                self.out.push_str(class);
                self.out.push_str("\">");
            }
            self.open = class;
        }
        push_escaped(&mut self.out, text);
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.out.push_str("</span>");
        }
        self.open = "";
    }

    fn finish(mut self) -> String {
        self.close();
        self.out
    }
}
