// A long answer as models write them: headings, paragraphs, lists, tables, code. Always the same.

const BYTES = 50_000;
/** The end of the answer, which marks a complete page. */
export const END = "That is all there is to say.";

const WORDS =
  "the server keeps every record in order and shows what it has written only after the commit so that a page which was watched is the page that is loaded later".split(
    " ",
  );

/** @param {number} from @param {number} count */
function words(from, count) {
  const chosen = Array.from({ length: count }, (_, n) => WORDS[(from * 7 + n * 5) % WORDS.length]);
  const text = chosen.join(" ");
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}

/** @param {number} n */
function paragraph(n) {
  return `${words(n, 24)} It is **bold** at ${n}, then *slanted*, then \`code_${n}()\`. ${words(n + 3, 30)}`;
}

/** @param {number} n */
function list(n) {
  return [0, 1, 2, 3].map((item) => `- item ${item + 1}: ${words(n + item, 11)}`).join("\n");
}

/** @param {number} n */
function table(n) {
  const rows = [0, 1, 2].map((row) => `| ${row} | ${words(n + row, 4)} | ${n * row} |`);
  return ["| number | what | value |", "|---|---|---:|", ...rows].join("\n");
}

/** @param {number} n */
function code(n) {
  const lines = Array.from({ length: 8 }, (_, line) =>
    n % 2
      ? `    let value_${line} = read(&input, ${line})?; // ${words(n + line, 3)}`
      : `    value_${line} = read(source, ${line})  # ${words(n + line, 3)}`,
  );
  return n % 2
    ? `\`\`\`rust\nfn section_${n}() -> Result<()> {\n${lines.join("\n")}\n}\n\`\`\``
    : `\`\`\`python\ndef section_${n}(source):\n${lines.join("\n")}\n\`\`\``;
}

export function answer() {
  const blocks = [];
  for (let n = 1, bytes = 0; bytes < BYTES; n += 1) {
    const section = [`## Section ${n}`, paragraph(n), list(n), code(n), paragraph(n + 1)];
    if (n % 4 === 0) section.push(table(n));
    blocks.push(...section);
    bytes += section.join("\n\n").length + 2;
  }
  return `${blocks.join("\n\n")}\n\n${END}\n`;
}
