//! The known languages and their names. Other names are ignored, so that no class comes from an agent's
//! text.

/// A language whose code can be highlighted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(usize);

impl Language {
    /// Returns the language with this name, alias, file extension or file name; `None` if it is
    /// unknown.
    pub(super) fn named(word: &str) -> Option<Self> {
        let is_it = |(name, _, words): &(&str, &str, &[&str])| {
            name.eq_ignore_ascii_case(word) || words.iter().any(|it| it.eq_ignore_ascii_case(word))
        };
        LANGUAGES.iter().position(is_it).map(Self)
    }

    /// Returns the name of the language for CSS classes and labels.
    pub fn name(self) -> &'static str {
        LANGUAGES[self.0].0
    }

    /// Returns the name of the syntax grammar for the language.
    pub(super) fn syntax(self) -> &'static str {
        LANGUAGES[self.0].1
    }

    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..LANGUAGES.len()).map(Self)
    }
}

impl std::fmt::Debug for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Name, grammar and aliases of each known language.
const LANGUAGES: &[(&str, &str, &[&str])] = &[
    ("ada", "Ada", &["adb", "ads"]),
    ("asm", "x86_64 Assembly", &["nasm", "assembly"]),
    ("awk", "AWK", &[]),
    (
        "bash",
        "Bourne Again Shell (bash)",
        &["sh", "shell", "zsh", "console", "shell-session", ".bashrc", ".zshrc", ".profile"],
    ),
    ("bat", "Batch File", &["cmd"]),
    ("c", "C", &["h"]),
    ("clojure", "Clojure", &["clj", "cljs", "edn"]),
    ("cmake", "CMake", &["CMakeLists.txt"]),
    ("cpp", "C++", &["c++", "cc", "cxx", "hpp", "hh", "hxx"]),
    ("crystal", "Crystal", &["cr"]),
    ("csharp", "C#", &["cs", "c#"]),
    ("css", "CSS", &[]),
    ("d", "D", &[]),
    ("dart", "Dart", &[]),
    ("diff", "Diff", &["patch"]),
    ("dockerfile", "Dockerfile", &["docker", "containerfile"]),
    ("dot", "Graphviz (DOT)", &["graphviz", "gv"]),
    ("elixir", "Elixir", &["ex", "exs"]),
    ("elm", "Elm", &[]),
    ("env", "DotENV", &["dotenv", ".env"]),
    ("erlang", "Erlang", &["erl", "hrl"]),
    ("fish", "Fish", &[]),
    ("fortran", "Fortran (Modern)", &["f90", "f95", "f03"]),
    ("fsharp", "F#", &["fs", "fsx", "f#"]),
    ("gitignore", "Git Ignore", &[".gitignore", ".dockerignore"]),
    ("glsl", "GLSL", &["vert", "frag"]),
    ("go", "Go", &["golang"]),
    ("gomod", "Gomod", &["go.mod"]),
    ("graphql", "GraphQL", &["gql"]),
    ("groovy", "Groovy", &["gradle", "jenkinsfile"]),
    ("haskell", "Haskell", &["hs"]),
    ("hcl", "Terraform", &["terraform", "tf", "tfvars"]),
    ("html", "HTML", &["htm", "xhtml"]),
    ("http", "HTTP Request and Response", &[]),
    ("ini", "INI", &["cfg", "conf", "desktop", ".editorconfig"]),
    ("java", "Java", &[]),
    ("javascript", "JavaScript", &["js", "mjs", "cjs", "node"]),
    ("jinja", "Jinja2", &["jinja2", "j2"]),
    ("jq", "JQ", &[]),
    ("json", "JSON", &["jsonc", "json5", "jsonl", "ndjson", "ipynb"]),
    ("julia", "Julia", &["jl"]),
    ("kotlin", "Kotlin", &["kt", "kts"]),
    ("latex", "LaTeX", &["tex"]),
    ("lean", "Lean 4", &["lean4"]),
    ("less", "Less", &[]),
    ("lisp", "Lisp", &["elisp", "el", "scheme", "scm", "common-lisp"]),
    ("llvm", "LLVM", &["ll"]),
    ("lua", "Lua", &[]),
    ("makefile", "Makefile", &["make", "mk", "gnumakefile"]),
    ("markdown", "Markdown", &["md", "mdx"]),
    ("matlab", "MATLAB", &[]),
    ("nginx", "nginx", &["nginx.conf"]),
    ("nim", "Nim", &[]),
    ("nix", "Nix", &[]),
    ("objective-c", "Objective-C", &["objc", "objectivec", "m"]),
    ("ocaml", "OCaml", &["ml", "mli"]),
    ("odin", "Odin", &[]),
    ("pascal", "Pascal", &["pas"]),
    ("perl", "Perl", &["pl", "pm"]),
    ("php", "PHP Source", &[]),
    ("properties", "Java Properties", &[]),
    ("protobuf", "Protocol Buffer", &["proto"]),
    ("purescript", "PureScript", &["purs"]),
    ("python", "Python", &["py", "python3", "pyi", "pyw", "starlark", "bzl"]),
    ("qml", "QML", &[]),
    ("r", "R", &["rscript"]),
    ("racket", "Racket", &["rkt"]),
    ("regex", "Regular Expression", &["regexp"]),
    ("rego", "Rego", &[]),
    ("requirements", "Requirements.txt", &["requirements.txt"]),
    ("rst", "reStructuredText", &["restructuredtext"]),
    ("ruby", "Ruby", &["rb", "rake", "gemfile", "rakefile"]),
    ("rust", "Rust", &["rs"]),
    ("sass", "Sass", &[]),
    ("scala", "Scala", &["sbt", "sc"]),
    ("scss", "SCSS", &[]),
    ("solidity", "Solidity", &["sol"]),
    ("sql", "SQL", &["postgres", "postgresql", "mysql", "sqlite", "plsql"]),
    ("ssh-config", "SSH Config", &["ssh_config", "sshconfig"]),
    ("svelte", "Svelte", &[]),
    ("swift", "Swift", &[]),
    ("systemverilog", "SystemVerilog", &["sv", "svh"]),
    ("tcl", "Tcl", &[]),
    ("toml", "TOML", &["Cargo.lock", "poetry.lock", "uv.lock"]),
    ("tsx", "TypeScriptReact", &["jsx"]),
    ("typescript", "TypeScript", &["ts", "mts", "cts"]),
    ("typst", "Typst", &["typ"]),
    ("verilog", "Verilog", &["v"]),
    ("vhdl", "VHDL", &["vhd"]),
    ("vim", "VimL", &["viml", "vimscript", ".vimrc"]),
    ("vue", "Vue Component", &[]),
    ("wgsl", "WGSL", &[]),
    ("xml", "XML", &["svg", "xsd", "xslt", "plist", "rss"]),
    ("yaml", "YAML", &["yml"]),
    ("zig", "Zig", &["zon"]),
];
