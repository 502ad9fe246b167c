// The scenarios of the scripted model, turn by turn, and its tools by the names of each client.

import path from "node:path";

/**
 * @typedef {import("./protocols.mjs").Gate} Gate
 *
 * A call names its purpose, which TOOLS maps to a tool.
 * @typedef {{kind: "use", tool: string, args: Record<string, string>}} Use
 * @typedef {import("./protocols.mjs").Words | Gate | Use} Part
 * @typedef {{refusal: number, message: string}} Refusal
 *
 * The parts of the first attempt, the second, and so on; the last one is repeated.
 * @typedef {{tries: (Part[] | Refusal)[]}} Tries
 */

/** @param {(string | Gate)[]} pieces @returns {Part} */
export const text = (...pieces) => ({ kind: "text", pieces });
/** @param {string} words @returns {Part} */
const thinking = (words) => ({ kind: "thinking", pieces: [words] });
/** @param {string} name @returns {Gate} */
const gate = (name) => ({ kind: "gate", name });
/** @type {Gate} */
const cut = { kind: "cut" };
/** @type {Gate} */
const fail = { kind: "fail" };
/** @param {string} command @returns {Part} */
const shell = (command) => ({ kind: "use", tool: "shell", args: { command } });
/** A command in the background. @param {string} command @returns {Part} */
const shellAside = (command) => ({ kind: "use", tool: "shellAside", args: { command } });
/** A command outside of the sandbox, if there is one, in this folder of the workspace. @param {string} command @param {string} folder @returns {Part} */
const escalate = (command, folder) => ({ kind: "use", tool: "escalate", args: { command, folder } });
/** A sub-agent of the program. @param {string} words @returns {Part} */
const delegate = (words) => ({ kind: "use", tool: "delegate", args: { text: words } });
/** @param {string} path @param {string} content @returns {Part} */
const write = (path, content) => ({ kind: "use", tool: "write", args: { path, content } });
/** @param {string} path @param {string} before @param {string} after @returns {Part} */
const edit = (path, before, after) => ({ kind: "use", tool: "edit", args: { path, before, after } });
/** @param {string} path @returns {Part} */
const read = (path) => ({ kind: "use", tool: "read", args: { path } });
/** @type {Part} */
const listAgents = { kind: "use", tool: "agents", args: {} };
/** @param {string} words @returns {Part} */
const note = (words) => ({ kind: "use", tool: "note", args: { text: words } });

/** A choice for a person. @type {Part} */
const choice = { kind: "use", tool: "choose", args: {} };

/** @param {string} agent @param {string} words @returns {Part} */
const ask = (agent, words) => ({ kind: "use", tool: "ask", args: { agent, text: words, session: "new" } });

/** The turns of each scenario. @type {Record<string, (Part[] | Refusal | Tries)[]>} */
export const SCENARIOS = {
  hello: [[text("Hello! This answer comes in several small pieces.")]],
  tools: [
    [text("First I look here."), shell("echo one")],
    [text("Then I look there."), shell("echo two")],
    [text("I have seen one and two.")],
  ],
  parallel: [[text("Both at once."), shell("echo left"), shell("echo right")], [text("Both came back.")]],
  thinking: [
    [thinking("I should look before I answer."), text("Let me look."), shell("echo thought")],
    [thinking("That was clear enough."), text("I have thought about it.")],
  ],
  files: [
    [text("I write it down."), write("note.txt", "alpha\nbeta\n")],
    [text("I change a word."), edit("note.txt", "beta", "gamma")],
    [text("I look at it again."), read("note.txt")],
    [text("The note is written.")],
  ],
  failing: [[text("This will fail."), shell("echo oops >&2; exit 3")], [text("It failed, as it should.")]],
  story: [[text("Once upon a time ", gate("story"), "there was no more to tell.")]],
  waiting: [[text("There is time."), shell("until [ -e go ]; do sleep 0.1; done; echo gone")], [text("That was all.")]],
  brokenOff: [[text("This breaks o", gate("brokenOff"), cut)]],
  colours: [[text("As it is:"), shell(String.raw`printf '\033[31mred\033[0m \303\244\342\202\254\n'`)], [text("Grün, 绿, 🟢.")]],
  forever: [[text("This never ends."), shell("echo started; tail -f /dev/null")], [text("It ended.")]],
  aside: [
    [text("This goes on aside."), shellAside("tail -f /dev/null")],
    [text("And this before me."), shell("echo started; tail -f /dev/null")],
    [text("It ended.")],
  ],
  delegating: [[text("Somebody else may look."), delegate("play:tools")], [text("It is being looked at.")]],
  delegatingForever: [[text("Somebody else may look."), delegate("play:forever")], [text("It is being looked at.")]],
  asking: [[text("I need a file."), escalate("touch asked.txt", ".")], [text("So be it.")]],
  writing: [[text("I write it."), write("notes/a.txt", "a\n")], [text("It is written.")]],
  writingMore: [[text("I write more."), write("notes/b.txt", "b\n")], [text("More is written.")]],
  writingElsewhere: [[text("I write there."), write("other/c.txt", "c\n")], [text("It is written there.")]],
  lookingOutside: [[text("Let me see."), escalate("cat secret.txt", "..")], [text("I have looked.")]],
  readingData: [[text("Let me see."), read("data/server.json")], [text("I have looked.")]],
  making: [[text("I make it."), escalate("touch made.txt", ".")], [text("It is made.")]],
  makingOutside: [[text("I make it there."), escalate("touch made.txt", "..")], [text("It is made there.")]],
  ownTools: [
    [text("Who is there?"), listAgents],
    [text("I leave a note."), note("Half way.")],
    [text("All is noted.")],
  ],
  twins: [[text("The same twice."), note("Twin."), note("Twin.")], [text("Both are noted.")]],
  choosing: [[text("I have to know."), choice], [text("As you wish.")]],
  askDemo: [[text("The demo agent knows."), ask("demo", "time in Paris")], [text("Now I know the time.")]],
  chain: [[text("I ask another."), ask("asking", "play:askDemo")], [text("It has asked a third.")]],
  toClaude: [[text("Claude knows."), ask("claude", "play:hello")], [text("Claude has answered.")]],
  toCodex: [[text("Codex knows."), ask("codex", "play:toPi")], [text("Codex has answered.")]],
  toPi: [[text("Pi knows."), ask("pi", "play:askDemo")], [text("Pi has answered.")]],
  askForever: [[text("I ask another."), ask("free", "play:forever")], [text("It ended.")]],
  recall: [[text("I remember all of it.")]],
  busyAtFirst: [
    {
      tries: [
        { refusal: 500, message: "The service has a bad moment." },
        { refusal: 503, message: "The service is overloaded." },
        [text("Now I look."), shell("echo seen")],
      ],
    },
    { tries: [{ refusal: 529, message: "The service is overloaded." }, [text("That was worth the wait.")]] },
  ],
  slowAtFirst: [{ tries: [{ refusal: 429, message: "One question at a time." }, [text("That was slow.")]] }],
  cutAtFirst: [
    { tries: [[text("This is begun and n", gate("cutAtFirst"), cut)], [text("This is begun and ended.")]] },
  ],
  failsAtFirst: [
    { tries: [[text("This is begun and n", gate("failsAtFirst"), fail)], [text("This is begun and ended.")]] },
  ],
  refused401: [{ refusal: 401, message: "This key opens nothing." }],
  refused429: [{ refusal: 429, message: "Too many questions today." }],
  refused500: [{ refusal: 500, message: "The service has a bad day." }],
};

/**
 * The tools by purpose, with the names and arguments of each client. The first one that a
 * request offers is called.
 * @type {Record<string, Record<string, (args: Record<string, string>, folder: string) => object | string>>}
 */
export const TOOLS = {
  shell: {
    // Otherwise it would continue in the background after ten seconds.
    exec_command: ({ command }) => ({ cmd: command, yield_time_ms: 60_000 }),
    Bash: ({ command }) => ({ command, description: "Run a command" }),
    bash: ({ command }) => ({ command }),
    shell: ({ command }) => ({ command }),
  },
  shellAside: {
    Bash: ({ command }) => ({ command, description: "Run a command", run_in_background: true }),
  },
  escalate: {
    exec_command: ({ command, folder }, workspace) => ({
      cmd: command,
      workdir: path.join(workspace, folder ?? ""),
      sandbox_permissions: "require_escalated",
      justification: "It has to be so.",
      yield_time_ms: 60_000,
    }),
    Bash: ({ command }) => ({ command, description: "Run a command" }),
    bash: ({ command }) => ({ command }),
    shell: ({ command }) => ({ command }),
  },
  delegate: {
    Agent: ({ text }) => ({ description: "Look", prompt: text, subagent_type: "general-purpose" }),
    multi_agent_v1__spawn_agent: ({ text }) => ({ message: text }),
  },
  write: {
    apply_patch: ({ path, content }) => patch(`Add File: ${path}`, content.replace(/^(?=.)/gm, "+").trimEnd()),
    Write: ({ path, content }, folder) => ({ file_path: `${folder}/${path}`, content }),
    write: ({ path, content }) => ({ path, content }),
    write_file: ({ path, content }) => ({ path, text: content }),
  },
  edit: {
    apply_patch: ({ path, before, after }) => patch(`Update File: ${path}`, `@@\n-${before}\n+${after}`),
    Edit: ({ path, before, after }, folder) => ({
      file_path: `${folder}/${path}`,
      old_string: before,
      new_string: after,
    }),
    edit: ({ path, before, after }) => ({ path, edits: [{ oldText: before, newText: after }] }),
    edit_file: ({ path, before, after }) => ({ path, old_string: before, new_string: after }),
  },
  choose: {
    AskUserQuestion: () => ({
      questions: [
        { question: "Which colour?", header: "Colour", multiSelect: false, options: options("Red", "Blue") },
        { question: "Which fruits?", header: "Fruit", multiSelect: true, options: options("Apple", "Plum", "Pear") },
        { question: "Which name?", header: "Name", multiSelect: false, options: options("Ann", "Bob") },
      ],
    }),
  },
  read: {
    Read: ({ path }, folder) => ({ file_path: `${folder}/${path}` }),
    read: ({ path }) => ({ path }),
    read_file: ({ path }) => ({ path }),
    exec_command: ({ path }) => ({ cmd: `cat ${path}` }),
  },
  // Callboard's own tools, which programs get from an MCP server.
  agents: { mcp__callboard__agents_list: () => ({}), agents_list: () => ({}) },
  ask: { mcp__callboard__agents_message: (args) => args, agents_message: (args) => args },
  note: { mcp__callboard__callboard_note: ({ text }) => ({ text }), callboard_note: ({ text }) => ({ text }) },
};

/** @param {string[]} labels */
function options(...labels) {
  return labels.map((label) => ({ label, description: `Choose ${label}` }));
}

/** @param {string} head @param {string} body */
function patch(head, body) {
  return `*** Begin Patch\n*** ${head}\n${body}\n*** End Patch`;
}
