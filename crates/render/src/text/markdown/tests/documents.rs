//! Documents that are hard to split, parts of random ones, and a long one.

pub(super) const DOCUMENTS: &[&str] = &[
    "",
    "Plain words, and more of them.\nA second line  \nafter a hard break\\\nand another.\n\nA new paragraph.",
    "Title\n=====\n\nSub\n---\n\nNot yet\n--x\n\n# One\n## Two ##\n####### seven\n#no",
    "Intro:\n- one\n- two\n\nIntro:\n* three\n\nNext\n***\nrule above",
    "- a\n- b\n\n- c makes it loose\n- d\n\n\nafter",
    "- a\n  - b\n    - c\n      - d\n    - e\n  - f\n- g\n",
    " - a\n  - b\n   - c\n    - d\n- e",
    "1. one\n2. two\n10. ten\n\n3) other list\n4) goes on\n\n7. seven\n8. eight",
    "Text\n14. does not interrupt\n1. does\n2. goes on\n\n- a\n-\n- \n- d",
    "- item\nlazy continuation\n> quote\nlazy too\n\n> again\n\n> a second quote",
    "> # Quoted\n> > deep\n> > > deeper\n> back\n\n>no space\n> - list\n>   - nested\n> ```rust\n> fn main() {}\n> ```\n> end",
    "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 | 5 |\n| 6 |\nno pipes\n\nafter",
    "a | b\n--|--\n`x|y` | **z**\n\\| | \\\\|\n> quote ends it\n\n| x |\n|---|",
    "foo\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| a | b |\n|---|\n| not a table |",
    "- | a | b |\n  |---|---|\n  | 1 | 2 |\n- next",
    "```rust\nfn main() {\n    println!(\"``\");\n}\n```\nafter\n\n```\nplain <b>\n\n\n```\n",
    "~~~~ js x\nlet a = `x`;\n~~~\nstill\n~~~~~\nout",
    "```\nnever closed\n``\n ``` x\n",
    "```sh\n    ```\n  ```\nafter three spaces\n\n   ```\n   indented fence\n     more\n   ```\n",
    "1. Do this:\n   ```sh\n   cargo build\n\n   cargo test\n   ```\n2. Then:\n\n   ~~~\n   x\n   ~~~\n\n   done\n3. ```rust\n   let x = 1;",
    "- ```\n  open in an item\nout of it\n\n- ```\n  a\n  ```\n  b",
    "    indented\n\n    code\n\ttab\n\npara\n    not code\n\n- a\n\n      code in item\n",
    "<div>\n<script>alert(1)</script>\n\n*emph* <b>bold</b> <!-- no -->\n\n<!-- a\n\nb -->\n\n<x-y z=\"1\">\n\ntext",
    "<details>\n<summary>S</summary>\n\n- a\n\n</details>\n\n<?php ?>\n<![CDATA[ x ]]>\n",
    "[ref] and [text][ref] and [ref][] before.\n\n[ref]: https://example.org/a \"Title\"\n\nAfter [ref].",
    "[a]: <https://e.org/x y>\n[b]: https://e.org\n'title\nover lines'\n\n[a] [b] [c]\n\n[c]:\nhttps://e.org/c",
    "A note[^1] and one[^big] and [^none].\n\n[^1]: The note.\n\n[^big]: Long\n\n    with a block\n    and more[^1]\n\nText after.",
    "[^a]: first\n[^b]: second\n\nuse [^b] [^a] [^b]\n\n> [^q]: quoted\n\nsee [^q]",
    "- [ ] open\n- [x] done\n- [X] also\n- [y] no\n- [ ]\n  1. [ ] deep\n\n- [x] loose",
    "1. 1. first\n\n1. [ ]\n    its mark alone\n2. [x]\n   again\n\n   and more\n\n- q\n\n- [ ]\n  # b",
    "*a* **b** ***c*** _d_ __e__ *f**g*h** a*b*c a_b_c **bold *and* more** ~~s~~ ~t~ ~~~u~~~",
    "**unfinished and *more\n\n`code and ``more`` and `\n\n[link](https://exa\n\n![img](x",
    "<https://a.b/c?d=e&f> <me@x.org> https://auto.link/a_b_c?x=(y), http://x) https:// xhttp://no https://e.org/. www.yes.org/a_b) (www.e.org) www. www.( xwww.no.org /www.no.org",
    "[a](javascript:alert(1)) [b](/rel) [c](#frag) [d](HTTPS://OK.org \"t\") [e](data:text/html,x) [f](mailto:a@b.c) [](https://e)",
    "![remote](https://e.org/a.png \"t\") [![badge](https://e.org/b.svg)](https://e.org) ![](https://e.org/c) ![d](data:image/png;base64,AAAA) ![e](data:image/svg+xml,x) ![*f* `g`](file:///x)",
    "Entities: &amp; &lt;b&gt; &copy; &#35; &#x22; &nope; & alone &#0;\n\n\\*not\\* \\<b> \\\\ \\a",
    "Tabs:\n-\ta\n\t- b\n\t\tcode?\n1.\tc\n\n\td\n>\te\n>\t\tf",
    "Ünïcödé 日本語の**太字**です。 🎉🇩🇪 e\u{301} \u{200b}zero\u{200b}width\u{200d} \u{202e}rtl \u{a0}nbsp\n\u{a0}\nnbsp line\n\u{3000}\nideographic",
    "a\u{0}b\u{b}c\u{c}d\u{1b}[0m\u{2028}e\u{85}f",
    "***\n---\n___\n- - -\n* * *\n_ _ _ _\n--\n==\n=\n-\n",
    "* a\n+ b\n- c\n* d\n\n\n* e\n---\n* f\n  ---\n  ===\n* g\n  ===\n",
    "> [!NOTE]\n> Be careful.\n\n> [!WARNING]\n> x\n> ```\n> y\n\n> [!nope]\n> z",
    "- a\n\n  b\n\n\n  c\n- d\n  > e\n  f\n- g\n  # h\n  i\n",
    "-\n  a\n-\n\n  b\n- \n\n- c\n\n\n      d\n",
    "# a\n    code after heading\n***\n    code after rule\n```\n```\n    code after fence\n",
    "para\n# heading interrupts\npara\n```\nfence interrupts\n```\npara\n<div>\nhtml interrupts\n\npara\n<b>does not</b>\n",
    "1. a\n\n   1. b\n\n      1. c\n\n   2. d\n2. e\n\ntext\n\n2. not merged\n",
    "Line with trailing spaces   \n   leading spaces\n\ttab\n \n  \nafter blank with spaces   ",
    "[x](<a b> 'c') [y](a\\)b) [z]( https://e.org/(a)(b) ) [w](https://e.org\n\"t\") [v][\nu]",
    "`` a`b `` ` c ` `d\ne` ``` f ``` `g \\` h`\n``\ni",
    "a  \nb\\\nc\n\n# d  \n# e\\\n\n* f  \n  g",
    "==\n\n=\n\n--\n\n|\n\n|--\n\n:-:\n\n> -\n\n>> ---\n\na\n>\n\nb\n|\n",
    "- a\n -\n  - b\n   -\n\n- c\n-",
    "word word word word word word word word word word word word word word word word word word word word, word. 1. 2) - # > word | word: word; `code` word",
];

/// Parts of random lines.
pub(super) const WORDS: &[&str] = &[
    "word",
    "two words",
    "a",
    "1.",
    "2)",
    "-",
    "*",
    "+",
    "-",
    "#",
    "##",
    "===",
    "---",
    "***",
    "```",
    "```rust",
    "~~~",
    "````",
    "|",
    "| a | b |",
    "|---|---|",
    "--|--",
    ":-:",
    "**bold**",
    "*em",
    "**",
    "_x_",
    "`code`",
    "`",
    "``",
    "~~del~~",
    "[x]",
    "[ ]",
    "[a]",
    "[a](https://e.org)",
    "[a][b]",
    "](",
    "[",
    "![i](https://e.org/i)",
    "<b>",
    "<div>",
    "</div>",
    "<!--",
    "-->",
    "<script>",
    "https://e.org/x",
    "www.e.org",
    "&amp;",
    "&",
    "\\",
    "\\*",
    "  ",
    "\t",
    ">",
    "> >",
    "[!NOTE]",
    "é",
    "日本",
    "\u{200b}",
    "\u{a0}",
    "😀",
    "[b]: https://e.org",
    "[^1]",
    "[^1]: note",
    "<a@b.c>",
    "{",
    "'q'",
    "\"",
];

/// Returns a typical message of an agent, of about `size` bytes.
pub(super) fn long_answer(size: usize) -> String {
    let mut text = String::new();
    let mut n = 0;
    while text.len() < size {
        n += 1;
        text.push_str(&format!(
            "## Part {n}: what was found\n\nThe server keeps its log in one file, and every record in it has a number. A reader that \
             was away asks for what came since, gets *exactly* that, and goes on with `watch({n})` as if nothing had happened. See \
             [the docs](https://example.org/docs/{n}) for **more** about it.\n\n"
        ));
        for item in 0..8 {
            text.push_str(&format!(
                "- Item {item} of {n}: the *first* thing to check is `config.rs`, then the rest\n"
            ));
        }
        text.push_str("\n| file | lines | note |\n|---|---:|---|\n");
        for row in 0..8 {
            text.push_str(&format!("| src/part{row}.rs | {n}{row} | changed in {row} places |\n"));
        }
        text.push_str("\n```rust\n");
        for line in 0..20 {
            text.push_str(&format!(
                "    let value_{line} = compute({n}, {line})?; // why it is so\n"
            ));
        }
        text.push_str("```\n\n1. Run the tests:\n   ```sh\n   cargo test\n   ```\n2. Look at the result.\n\n> It is quoted, and\n> goes on for a while.\n\n");
    }
    text
}
