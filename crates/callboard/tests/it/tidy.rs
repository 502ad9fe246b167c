//! Rules for the code and its language that a program can check.

use std::path::{Path, PathBuf};

const PURE: [(&str, &[&str]); 5] = [
    ("transcript", &["jiff", "schemars", "serde", "serde_json"]),
    ("backends", &["memchr", "serde", "serde_json", "transcript"]),
    (
        "session",
        &["backends", "schemars", "serde", "serde_json", "thiserror", "transcript", "uuid"],
    ),
    ("formats", &["base64", "schemars", "serde", "serde_json", "transcript"]),
    (
        "render",
        &[
            "maud",
            "pulldown-cmark",
            "serde",
            "serde_json",
            "similar",
            "syntect",
            "transcript",
            "two-face",
            "unicode-general-category",
            "vte",
        ],
    ),
];

/// Crates of the workspace that each crate may depend on.
const LAYERS: [(&str, &[&str]); 11] = [
    ("transcript", &[]),
    ("backends", &["transcript"]),
    ("session", &["backends", "transcript"]),
    ("formats", &["transcript"]),
    ("render", &["transcript"]),
    ("store", &["transcript"]),
    ("testkit", &["transcript"]),
    ("tools", &["backends", "transcript"]),
    ("runtime", &["backends", "formats", "render", "session", "store", "tools", "transcript"]),
    ("web", &["backends", "formats", "render", "runtime", "session", "store", "transcript"]),
    (
        "callboard",
        &[
            "backends",
            "formats",
            "render",
            "runtime",
            "session",
            "store",
            "tools",
            "transcript",
            "web",
        ],
    ),
];

/// Names of I/O, clocks and threads, which a pure crate must not use.
const IMPURE: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "tokio",
];

/// Words that have a plainer equivalent; `docs/glossary.md` has the terms to use.
const BANNED_WORDS: [&str; 28] = [
    "a retelling",
    "a telling",
    "and the like",
    "anew",
    "brought along",
    "hire",
    "hired",
    "hires",
    "in patience",
    "last words",
    "mend",
    "mended",
    "mends",
    "put to rest",
    "puts to rest",
    "retelling",
    "retellings",
    "see off",
    "seen off",
    "sees off",
    "so it is with",
    "tellings",
    "the retelling",
    "the telling",
    "thereof",
    "whoever",
    "whomever",
    "whosoever",
];

/// First words of doc comments that stand for a noun.
const BANNED_BEGINNINGS: [&str; 7] = ["What", "Of", "By", "Those", "Outside", "Less", "Who"];

/// Text of a message in a test of the page.
const TEST_DATA: &str = "Last words.";

/// Contains the banned words, as terms to avoid.
const GLOSSARY: &str = "glossary.md";

/// Maximum length of the name of a test.
const MAX_TEST_NAME: usize = 60;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn rust_files(dir: &Path) -> Vec<PathBuf> {
    files(dir, &["rs"])
}

/// Returns the files below a folder with one of these extensions, without installed packages.
fn files(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("node_modules") {
            found.extend(files(&path, extensions));
        } else if extensions.iter().any(|it| path.extension().is_some_and(|other| other == *it)) {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_file_starts_with_a_module_comment() {
    let files = rust_files(&root().join("crates"));
    assert!(files.len() > 40, "too few files found");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} has no module comment", file.display());
    }
}

/// The page shows these messages as plain text, without Markdown.
#[test]
fn errors_that_people_read_have_no_backticks() {
    let crates = root().join("crates");
    let mut files = rust_files(&crates.join("backends/src"));
    files.retain(|it| it.ends_with("failure.rs"));
    assert!(files.len() > 3, "too few files found");
    for folder in
        ["runtime/src/agents", "runtime/src/driver", "tools/src/mcp", "tools/src/built_in"]
    {
        files.extend(rust_files(&crates.join(folder)));
    }
    files.retain(|it| !it.components().any(|it| it.as_os_str() == "tests"));
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut code = text.lines().filter(|it| !it.trim_start().starts_with("//"));
        assert_eq!(code.find(|it| it.contains('`')), None, "in {}", file.display());
    }
}

#[test]
fn pure_crates_stay_pure() {
    for (name, allowed) in PURE {
        let folder = root().join("crates").join(name);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let used = manifest["dependencies"].as_table().unwrap().iter();
        // Optional dependencies are for tests and schemas.
        let used = used.filter(|(_, it)| it.get("optional").is_none());
        for (dependency, _) in used {
            assert!(allowed.contains(&dependency.as_str()), "{name} depends on {dependency}");
        }
        for file in rust_files(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let impure = IMPURE.iter().find(|word| text.contains(**word));
            assert_eq!(impure, None, "in {}", file.display());
        }
    }
}

#[test]
fn every_file_of_the_page_is_served() {
    let files = |folder: &str| {
        let entries = std::fs::read_dir(root().join("web").join(folder)).unwrap();
        entries.map(|it| it.unwrap().file_name().into_string().unwrap())
    };
    for module in files("script") {
        assert!(render::assets().iter().any(|it| it.name == module), "{module} is not listed");
    }
    for file in files("style") {
        let layer = format!("@layer {} {{", file.trim_end_matches(".css"));
        assert!(render::stylesheet().contains(&layer), "{file} is not listed");
    }
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let mut found = std::fs::read_dir(root().join("crates")).unwrap().count();
    for (name, allowed) in LAYERS {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
        let used = manifest["dependencies"].as_table().unwrap().keys();
        let of_workspace = used.filter(|used| LAYERS.iter().any(|(name, _)| name == used));
        for dependency in of_workspace {
            assert!(allowed.contains(&dependency.as_str()), "{name} depends on {dependency}");
        }
        found -= 1;
    }
    assert_eq!(found, 0, "a crate is missing in LAYERS");
}

/// Predicates take no `&mut self` and return a bool.
#[test]
fn predicates_change_nothing_and_return_bool() {
    let mut n_predicates = 0;
    for file in rust_files(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("fn ") {
            let signature = &text[at + 3..];
            let Some(end) = signature.find(['{', ';']) else { continue };
            let signature: String = signature[..end].split_whitespace().collect();
            if !["is_", "has_", "may_"].iter().any(|it| signature.starts_with(it)) {
                continue;
            }
            n_predicates += 1;
            let returns_bool =
                signature.rsplit_once("->").is_some_and(|(_, it)| it.contains("bool"));
            let is_right = !signature.contains("(&mutself") && returns_bool;
            assert!(is_right, "{}: {signature}", file.display());
        }
    }
    assert!(n_predicates > 200, "too few predicates found: {n_predicates}");
}

#[test]
fn comments_and_texts_avoid_banned_words() {
    for file in rust_files(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).unwrap();
        // Strings of tests are data.
        let is_test = file.components().any(|it| it.as_os_str() == "tests")
            || file.file_name().is_some_and(|it| it == "tests.rs");
        for (kind, prose) in prose_of(&text) {
            if kind == Prose::Comment || !is_test {
                assert_eq!(banned_word(&prose), None, "in {}: {prose}", file.display());
            }
        }
    }
}

#[test]
fn scripts_styles_and_benchmarks_avoid_banned_words() {
    for (folder, at_least) in [("e2e", 60), ("web", 20), ("bench", 20), ("examples", 1)] {
        let files = files(&root().join(folder), &["css", "js", "jsx", "mjs", "rs"]);
        assert!(files.len() > at_least, "too few files found in {folder}: {}", files.len());
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap().replace(TEST_DATA, "");
            assert_eq!(banned_word(&text), None, "in {}", file.display());
        }
    }
}

#[test]
fn documents_avoid_banned_words() {
    let mut files = files(&root().join("docs"), &["md"]);
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|it| root().join(it)));
    assert!(files.len() > 10, "too few files found");
    for file in files {
        if file.ends_with(GLOSSARY) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(banned_word(&text), None, "in {}", file.display());
    }
}

#[test]
fn doc_comments_begin_with_a_verb_or_a_noun() {
    for file in rust_files(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut is_first = true;
        for line in text.lines().map(str::trim_start) {
            let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            if let Some(doc) = doc.filter(|_| is_first) {
                let word = doc.split_whitespace().next().unwrap_or_default();
                assert!(!BANNED_BEGINNINGS.contains(&word), "in {}: {line}", file.display());
            }
            is_first = doc.is_none();
        }
    }
}

#[test]
fn test_names_are_short() {
    for file in rust_files(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_test = |it: &str| it.starts_with("#[test]") || it.starts_with("#[tokio::test");
        for (idx, _) in lines.iter().enumerate().filter(|(_, it)| is_test(it)) {
            let signature = lines[idx + 1..].iter().find_map(|it| it.split_once("fn "));
            let name = signature.and_then(|(_, it)| it.split('(').next()).unwrap_or_default();
            assert!(name.len() <= MAX_TEST_NAME, "in {}: {name}", file.display());
        }
    }
}

#[test]
fn prose_is_separated_from_code() {
    let code =
        "let a = 'b'; // one\nfn f<'a>() { g(\"two \\\" //\", r#\"th\"ree\"#, '\"') }\n/* four */";
    let prose: Vec<String> = prose_of(code).into_iter().map(|(_, it)| it).collect();
    assert_eq!(prose, ["// one", "two \\\" //", "th\"ree", "/* four */"]);
    assert_eq!(banned_word("Started anew."), Some("anew"));
    assert_eq!(banned_word("an amended text, shown_anew"), None);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prose {
    Comment,
    String,
}

/// Returns the comments and the string literals of Rust code.
fn prose_of(code: &str) -> Vec<(Prose, String)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(['/', '"', '\'', 'r']) {
        rest = &rest[start..];
        let n_hashes = rest[1..].len() - rest[1..].trim_start_matches('#').len();
        let is_raw = rest.starts_with('r') && rest[1 + n_hashes..].starts_with('"');
        let (kind, length, end) = if rest.starts_with("//") {
            (Prose::Comment, 0, rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (Prose::Comment, 0, rest.find("*/").map_or(rest.len(), |it| it + 2))
        } else if is_raw {
            let close = format!("\"{}", "#".repeat(n_hashes));
            let open = 2 + n_hashes;
            (Prose::String, open, rest[open..].find(&close).map_or(rest.len(), |it| it + open))
        } else if rest.starts_with('"') {
            (Prose::String, 1, closing_quote(rest))
        } else {
            rest = &rest[length_of_other(rest)..];
            continue;
        };
        found.push((kind, rest[length..end].to_owned()));
        // A closing quote would open the next string.
        let closed = usize::from(kind == Prose::String && end < rest.len());
        rest = &rest[end + closed..];
    }
    found
}

/// Returns the position of the quote that closes a string.
fn closing_quote(string: &str) -> usize {
    let mut is_escaped = false;
    for (at, it) in string.char_indices().skip(1) {
        match it {
            '"' if !is_escaped => return at,
            it => is_escaped = it == '\\' && !is_escaped,
        }
    }
    string.len()
}

/// Returns the length of a character literal that could be taken for a string or a comment, else one.
fn length_of_other(code: &str) -> usize {
    let literals = ["'\"'", "'/'", "'\\''", "'\\\\'"];
    literals.iter().find(|it| code.starts_with(**it)).map_or(1, |it| it.len())
}

/// Returns a banned word that occurs in the text.
fn banned_word(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let is_letter = |it: char| it.is_alphanumeric() || it == '_';
    BANNED_WORDS.into_iter().find(|word| {
        text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
        })
    })
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest: toml::Table =
        std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let reasons = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    for (name, dependency) in manifest["workspace"]["dependencies"].as_table().unwrap() {
        let is_ours = dependency.get("path").is_some();
        assert!(is_ours || reasons.contains(&format!("`{name}`")), "{name} has no reason");
    }
}

/// Dependencies are used by the code of the program, dev-dependencies at least by tests.
#[test]
fn every_dependency_is_used() {
    let mut manifests: Vec<PathBuf> =
        std::fs::read_dir(root().join("crates")).unwrap().map(|it| it.unwrap().path()).collect();
    manifests.push(root().join("bench"));
    for folder in manifests {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let names = |section: &str| -> Vec<String> {
            let section = manifest.get(section).and_then(|it| it.as_table());
            section.into_iter().flat_map(|it| it.keys().cloned()).collect()
        };
        let (dependencies, of_tests) = (names("dependencies"), names("dev-dependencies"));
        let (mut program, mut tests) = (String::new(), String::new());
        for file in ["src", "tests", "benches", "examples"].map(|it| folder.join(it)) {
            for file in if file.is_dir() { rust_files(&file) } else { Vec::new() } {
                let text = without_comments(&std::fs::read_to_string(&file).unwrap());
                let is_test = file.strip_prefix(&folder).unwrap().iter().any(|it| {
                    ["tests", "tests.rs", "benches", "examples"].iter().any(|name| it == *name)
                });
                let (code, inline) =
                    text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
                if is_test {
                    tests += code
                } else {
                    program += code
                }
                tests += inline;
            }
        }
        for name in &dependencies {
            assert!(names_crate(&program, name), "{} does not use {name}", folder.display());
        }
        // Those in both sections add a feature for tests.
        for name in of_tests.iter().filter(|it| !dependencies.contains(it)) {
            let is_used = names_crate(&tests, name) || names_crate(&program, name);
            assert!(is_used, "the tests of {} do not use {name}", folder.display());
        }
    }
}

fn without_comments(code: &str) -> String {
    let lines = code.lines().filter(|it| !it.trim_start().starts_with("//"));
    lines.flat_map(|it| [it, "\n"]).collect()
}

/// Returns whether the code has a path into the crate.
fn names_crate(code: &str, name: &str) -> bool {
    let path = format!("{}::", name.replace('-', "_"));
    let is_letter = |it: char| it.is_alphanumeric() || it == '_';
    code.match_indices(&path).any(|(at, _)| {
        let before = code[..at].strip_suffix("::").unwrap_or(&code[..at]);
        !before.ends_with(is_letter)
    })
}

#[test]
fn uses_of_crates_are_found() {
    assert!(names_crate("use serde_json::Value;", "serde-json"));
    assert!(names_crate("#[derive(serde::Serialize)]", "serde"));
    assert!(names_crate("use ::serde::Serialize;", "serde"));
    assert!(!names_crate("let serde = my_serde::new(); other::serde::new()", "serde"));
    assert!(!names_crate(&without_comments("// like serde::Serialize"), "serde"));
}

/// `cargo update` would choose the tables of ICU, which are 21 crates. This returns to the smaller ones:
/// `cargo update -p idna_adapter --precise 1.1.0`.
#[test]
fn hosts_need_no_icu() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    assert!(lock.contains("name = \"idna_adapter\"\nversion = \"1.1."), "another backend of idna");
    assert!(!lock.contains("name = \"icu_"), "a crate of ICU");
}
