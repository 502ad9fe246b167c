// The four looks, with hand-written logs: each shows and hides its parts, and screen readers do not read
// hidden parts either.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { LOOKS, openAll, seen, setRoot, spoken } from "./drive.mjs";
import { openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

const TOOLS = ["Bash", "Read", "Grep", "TodoWrite", "Edit", "WebFetch", "Bash"];
const FAILED = ["Bash", "WebFetch"];

/** @param {any} t @param {string} name @param {string} [look] */
async function open(t, name, look = "widget") {
  const page = await browser.newPage(t);
  const drawn = await openDrawn(page, name, gallery.html(name));
  await setRoot(page, { toolDisplay: look });
  return { page, drawn, answer: page.locator('.message[data-role="assistant"]').first() };
}

test("X3 widget: one line opens to all calls in their order", async (t) => {
  const { page, answer } = await open(t, "tools");
  assert.match(await answer.locator(".activity > summary").innerText(), /Used 7 tools · 2 failed, first: .+ · 12s/);
  const names = answer.locator(".tool-block .name");
  assert.deepEqual(await seen(names), []);
  assert.deepEqual(await seen(page.locator(".tool-calls-container")), []);
  assert.doesNotMatch(await spoken(page), /cargo test --lib|Tool call|TodoWrite/);
  assert.match(await spoken(page), /Used 7 tools[^]*parse_hours/);

  await answer.locator(".activity > summary").click();
  assert.deepEqual(await seen(names), TOOLS);
  assert.match(await spoken(page), /cargo test --lib clock/);
  assert.match((await seen(answer.locator(".commentary"))).join(), /I'll run the tests first/);
});

test("X3 badges: text, then a badge for each call with its state", async (t) => {
  const { page, answer } = await open(t, "tools", "badges");
  assert.deepEqual(await seen(answer.locator(".tool-call-badge .label")), [
    ...TOOLS.slice(0, -1),
    "Bash #2",
  ]);
  assert.deepEqual(await seen(answer.locator(".tool-block .name")), []);
  assert.deepEqual(await seen(page.locator(".activity")), []);
  const failed = answer.locator('.badge[data-state="failed"]');
  assert.deepEqual(await seen(failed.locator(".label")), FAILED);
  assert.match((await seen(failed)).join(), /Bash failed/);
  assert.match(await spoken(page), /group "Tool calls"[^]*button "Tool call: Bash #2"/);
  assert.match(await spoken(page), /I'll run the tests/);
  assert.doesNotMatch(await spoken(page), /Used 7 tools/);
});

test("X3 panels: a panel for each call with its time and failure", async (t) => {
  const { page, answer } = await open(t, "tools", "panels");
  assert.deepEqual(await seen(answer.locator(".tool-block .name")), TOOLS);
  assert.deepEqual(await seen(page.locator(".activity, .tool-calls-container")), []);
  assert.doesNotMatch(await spoken(page), /Used 7 tools|Tool call:/);
  const [first] = await seen(answer.locator(".tool-block > details > summary"));
  assert.match(first ?? "", /^▶? ?Bash \(4\.2s\).*cargo test --lib clock.*failed/);
  const timing = await seen(page.locator(".timing"));
  assert.deepEqual(timing, ["Assistant · 12s · 6,500 tokens", "Assistant · 1.2s · 650 tokens"]);

  const [failed, fine] = [".tool-block.error", ".tool-block.success"].map((it) => answer.locator(it).first());
  const colours = await Promise.all([failed, fine].map((it) => colour(it, "borderTopColor")));
  assert.ok(isRed(colours[0]), `the border of an error: ${colours[0]}`);
  assert.ok(!isRed(colours[1]), `the border of a success: ${colours[1]}`);
  const bubble = page.locator(".bubble").first();
  assert.deepEqual(await colour(bubble, "color"), [255, 255, 255]);
  const [user, column] = await Promise.all([bubble.boundingBox(), answer.boundingBox()]);
  assert.ok(user && column && user.x > column.x + 40, "the user's words stand on the right");
});

test("X3 panels: Show details opens arguments, result and stop reason", async (t) => {
  const { page } = await open(t, "tools", "panels");
  const panel = page.locator(".tool-block", { hasText: "cargo test --lib clock" }).first();
  await panel.locator("summary").first().click();
  const json = panel.locator(".raw .body").first();
  assert.ok(!(await json.isVisible()));
  await panel.getByText("Show details").click();
  assert.match(await json.innerText(), /"command": "cargo test --lib clock"/);
  const stopped = (await open(t, "failed", "panels")).page;
  const trace = stopped.locator(".trace li").first();
  assert.ok(!(await trace.isVisible()));
  await stopped.locator(".trace").getByText("Show details").click();
  assert.ok(await trace.isVisible());
});

test("X3 timeline: everything is in chronological order", async (t) => {
  const { page, answer } = await open(t, "tools", "timeline");
  assert.deepEqual(await seen(answer.locator(".tool-block .name")), TOOLS);
  assert.deepEqual(await seen(page.locator(".activity, .tool-calls-container")), []);
  const parts = await answer.locator(".parts > *").filter({ visible: true }).all();
  const places = await Promise.all(parts.map(async (it) => (await it.boundingBox())?.y ?? 0));
  assert.ok(parts.length >= TOOLS.length + 4);
  assert.deepEqual(places, [...places].sort((a, b) => a - b));
  const kinds = await Promise.all(parts.slice(0, 3).map((it) => it.getAttribute("class")));
  assert.deepEqual(kinds.map((it) => it?.split(" ")[0]), ["thinking", "text", "tool-block"]);
});

test("stopped, cut and agent calls differ in text and style", async (t) => {
  for (const look of ["panels", "timeline"]) {
    const stopped = (await open(t, "stopped", look)).page.locator(".tool-block.interrupted");
    assert.match((await seen(stopped)).join(), /⚠ Interrupted/);
    assert.equal(await style(stopped, "borderTopStyle"), "dashed");
    const cut = (await open(t, "long", look)).page.locator(".tool-block.truncated");
    assert.match((await seen(cut)).join(), /⚠ Truncated for the model: 16 KB of 40 KB/);
    const callback = (await open(t, "exchange", look)).page.locator(".agent-callback").first();
    const plain = (await open(t, "tools", look)).page.locator(".tool-block.success").first();
    assert.notDeepEqual(await colour(callback, "borderTopColor"), await colour(plain, "borderTopColor"));
  }
});

test("the widget is thinking, working or complete", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("tools");
  const { patch } = await openDrawn(page, "tools", first);
  const line = page.locator(".tool-widget").first();
  /** @type {Map<string, Set<string>>} */
  const states = new Map();
  for (const step of patches) {
    await patch(step);
    if ((await line.count()) === 0) continue;
    const state = (await line.getAttribute("data-state")) ?? "";
    states.set(state, (states.get(state) ?? new Set()).add((await line.textContent())?.trim() ?? ""));
    if (state === "complete") break;
  }
  assert.deepEqual([...states.keys()], ["thinking", "working", "complete"]);
  const headings = (/** @type {string} */ state) => [...(states.get(state) ?? [])];
  assert.deepEqual(headings("thinking"), ["Thinking..."]);
  for (const name of TOOLS) assert.ok(headings("working").some((it) => it.startsWith(name)), name);
  assert.equal(headings("complete").length, 1);
  assert.match(headings("complete")[0] ?? "", /^Used 7 tools · 2 failed/);

  const counts = (await open(t, "stopped")).page.locator(".tool-widget");
  assert.match(await counts.innerText(), /Used 1 tool · 1 interrupted/);
});

test("a completed run without calls has no widget", async (t) => {
  const { answer } = await open(t, "stopped");
  assert.equal(await answer.locator(".tool-widget").count(), 0);
  assert.deepEqual(await seen(answer.locator(".activity")), []);
});

test("X5.4 every look shows an active run, and none a completed one", async (t) => {
  const signs = ".typing, .tool-widget:not([data-state=complete]), .approval";
  for (const name of ["tools", "stopped", "queue", "subagent"]) {
    const page = await browser.newPage(t);
    const { first, patches, pages } = gallery.replay(name);
    const { patch } = await openDrawn(page, name, first);
    for (const step of patches) {
      await patch(step, pages[step.seq]);
      const missing = await page.evaluate(
        ([looks, signs]) => {
          const root = document.documentElement;
          const state = document.querySelector(".foot .now")?.getAttribute("data-state");
          const isOn = state === "running" || state === "waiting";
          const wrong = looks.filter((look) => {
            root.dataset.toolDisplay = look;
            const all = [...document.querySelectorAll(signs)];
            return isOn !== all.some((it) => it.checkVisibility({ visibilityProperty: true }));
          });
          root.dataset.toolDisplay = "widget";
          return wrong;
        },
        /** @type {[string[], string]} */ ([LOOKS, signs]),
      );
      assert.deepEqual(missing, [], `${name} at ${step.seq}`);
    }
    await page.close();
  }
});

test("X5.5 exchanges show their messages, callbacks and sessions", async (t) => {
  const { page } = await open(t, "exchange", "timeline");
  await openAll(page);
  const blocks = await seen(page.locator(".exchange"));
  assert.equal(blocks.length, 2);
  assert.match(blocks[0] ?? "", /Message to codex answered .*Is the build \*\*green\*\*\? Yes, since 08:40/);
  assert.match(blocks[1] ?? "", /Message to pi failed .*did not answer within 300s agent_timeout/);
  assert.equal(await page.locator(".exchange a").first().getAttribute("href"), "/s/s2#m=r7");
  assert.match((await seen(page.locator(".from"))).join(), /From codex/);
});

test("X5.6 tools of all agents have the same views", async (t) => {
  const { page } = await open(t, "tools", "timeline");
  await openAll(page);
  const shown = await page.locator("#conversation").innerText();
  // A shell, a file, a search, a plan, a diff, and an unknown tool.
  for (const words of ["cargo test --lib clock", "fn parse_hours", "matches", "Change the bound", "zone"]) {
    assert.ok(shown.includes(words), words);
  }
  assert.ok((await page.locator(".diff").count()) > 0, "an edit is shown as a diff");
  const other = await open(t, "decided", "timeline");
  await openAll(other.page);
  assert.match(await other.page.locator("#conversation").innerText(), /rm -r build[^]*NOTE\.md/);
});

test("X6.10 every call stands inside its own answer", async (t) => {
  for (const name of gallery.names) {
    const { page } = await open(t, name, "timeline");
    const strays = await page.locator(".tool-block[data-call-id]").evaluateAll((blocks) =>
      blocks
        .filter((it) => !it.closest(".approval, .card"))
        .map((it) => [
          it.getAttribute("data-call-id")?.split(".")[0],
          it.closest(".message")?.getAttribute("data-response-id"),
        ])
        .filter(([call, answer]) => call !== answer),
    );
    assert.deepEqual(strays, [], name);
    await page.close();
  }
});

test("X6.11 exchanges and sub-agents are nested after a reload", async (t) => {
  const { page } = await open(t, "subagent", "timeline");
  await openAll(page);
  const nested = page.locator(".tool-block .nested .tool-block");
  assert.deepEqual(await seen(nested.locator(".name")), ["Glob", "Read"]);
  const { page: exchange } = await open(t, "exchange", "timeline");
  const before = await exchange.locator(".messages").innerText();
  await exchange.reload();
  await setRoot(exchange, { toolDisplay: "timeline" });
  assert.equal(await exchange.locator(".messages").innerText(), before);
});

/** @param {import("playwright-core").Locator} of @param {string} property */
function style(of, property) {
  return of.evaluate((it, name) => /** @type {any} */ (getComputedStyle(it))[name], property);
}

/** The colour as red, green and blue. @param {import("playwright-core").Locator} of @param {string} property */
async function colour(of, property) {
  return of.evaluate(
    (it, [property, words]) => {
      const canvas = new OffscreenCanvas(1, 1).getContext("2d");
      if (!canvas) throw new Error(words);
      canvas.fillStyle = /** @type {any} */ (getComputedStyle(it))[property];
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    },
    [property, "no canvas"],
  );
}

/** @param {number[] | undefined} colour */
function isRed([red = 0, green = 0, blue = 0] = []) {
  return red > green + 60 && red > blue + 60;
}

test("X3 panels: a call is \"search (2.1s)\" and opens with one click", async (t) => {
  const { page } = await open(t, "odd", "panels");
  const block = page.locator(".tool-block:has(.raw.only)", { hasText: "search" }).first();
  const summary = block.locator("> details > summary");
  assert.match(await summary.innerText(), /search \(\d+(\.\d)?m?s\)/);
  await summary.click();
  // One click shows the arguments and the result.
  const brief = await seen(block.locator(".brief p"));
  assert.match(brief[0] ?? "", /^Args: /);
  assert.match(brief[1] ?? "", /^Result: /);
  const title = block.locator(".section .title").first();
  assert.ok(!(await title.isVisible()), "collapsed");
  await block.getByText("Show details").click();
  assert.ok(await title.isVisible());
  await block.getByText("Show details").click();
  for (const look of LOOKS.filter((it) => it !== "panels" && it !== "badges")) {
    await setRoot(page, { toolDisplay: look });
    await openAll(page);
    assert.deepEqual(await seen(block.getByText("Show details")), [], look);
    assert.ok(await title.isVisible(), look);
  }
});

// One bare `:last-child` or `:nth-last-child` in the stylesheet is enough to break it, and then every word of a
// long answer costs as much as the answer is long.
test("additions to an answer keep the style of earlier parts", async (t) => {
  const { page, drawn } = await open(t, "tools");
  const text = page.locator(".parts > .text").last();
  const before = await text.locator("> *").evaluateAll((all) => all.map(({ id }) => id));
  assert.ok(before.length > 0);
  const chromium = page.context().browser();
  const categories = ["disabled-by-default-devtools.timeline.invalidationTracking"];
  await chromium?.startTracing(page, { categories });
  const seq = Number(await page.evaluate(() => document.body.dataset.head)) + 1;
  const ops = [["add", await text.getAttribute("id"), '<p id="added">One more paragraph.</p>']];
  await drawn.patch({ seq, ops });
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  const { traceEvents } = JSON.parse(`${await chromium?.stopTracing()}`);
  const named = traceEvents.map((/** @type {any} */ it) => it.args?.data?.nodeName);
  const styled = new Set(named.map((/** @type {string} */ it) => /id='([^']*)'/.exec(it)?.[1]));
  assert.ok(styled.has("added"));
  assert.deepEqual(before.filter((id) => styled.has(id)), []);
});

// With the real stylesheet: hidden texts are one visible disclosure away, and cut texts can be opened.
test("every look shows all texts of an answer", async (t) => {
  for (const name of gallery.names) {
    const { page } = await open(t, name);
    await page.addStyleTag({ content: ".message { content-visibility: visible !important; }" });
    const lost = await page.evaluate((looks) => {
      const root = document.documentElement;
      const isSeen = (/** @type {Element | null} */ it) => !!it?.checkVisibility({ visibilityProperty: true });
      /** @type {string[]} */
      const lost = [];
      for (const reveal of ["smart", "live", "deferred"]) {
        for (const look of looks) {
          Object.assign(root.dataset, { reveal, toolDisplay: look });
          for (const text of document.querySelectorAll(".messages > .message > .parts > .text")) {
            if (text.matches(".leaked, .discarded, .undecided") || !text.textContent?.trim()) continue;
            const isWhole = () => isSeen(text) && text.scrollHeight <= text.clientHeight + 1;
            if (isWhole()) continue;
            const closed = text.closest(".message")?.querySelectorAll("details:not([open])") ?? [];
            const isWay = (/** @type {Element} */ it) => {
              if (!isSeen(it.querySelector(":scope > summary"))) return false;
              it.setAttribute("open", "");
              const leads = isWhole();
              it.removeAttribute("open");
              return leads;
            };
            if (![...closed].some(isWay)) lost.push(`${look} ${reveal}: ${text.textContent?.slice(0, 60)}`);
          }
        }
      }
      return lost;
    }, LOOKS);
    assert.deepEqual(lost, [], name);
    await page.close();
  }
});

test("every look shows the commentary of a last call", async (t) => {
  const { page } = await open(t, "words");
  for (const look of LOOKS) {
    await setRoot(page, { toolDisplay: look });
    const finals = await seen(page.locator(".parts > .final"));
    for (const words of ["Here you are.", "The answer is 42.", "See below.", "I will ask codex."]) {
      assert.ok(finals.includes(words), `${look}: ${words}`);
    }
    assert.ok(finals.some((it) => it.endsWith("find out for you.")), look);
  }
});

test("every look shows a stopped exchange in amber", async (t) => {
  const { page } = await open(t, "words");
  const block = page.locator(".exchange");
  for (const look of LOOKS) {
    await setRoot(page, { toolDisplay: look });
    if (look === "widget") await page.locator(".message", { has: block }).locator(".activity > summary").click();
    assert.match((await seen(block)).join(), /Message to codex.*⚠ Interrupted/, look);
    assert.doesNotMatch((await seen(block)).join(), /failed/, look);
    assert.ok(!isRed(await colour(block.locator(".state"), "color")), look);
    if (look !== "timeline") continue;
    const mark = await page.locator(".tool-block", { has: block }).first().evaluate((it) => getComputedStyle(it, "::after").content);
    assert.notEqual(mark, "none", "it has a mark on the rail");
  }
  await openAll(page);
  assert.ok(!isRed(await colour(block.locator(".failure"), "color")), "inside, too");
  const lines = page.locator(".picture .stops .line");
  assert.equal(await lines.count(), 2, "in the picture of who asked whom, too");
  for (const line of await lines.all()) assert.ok(!isRed(await colour(line, "stroke")));
});

test("every look shows an exchange without a call", async (t) => {
  const { page } = await open(t, "exchange");
  const blocks = page.locator(".parts > .exchange");
  for (const look of LOOKS) {
    await setRoot(page, { toolDisplay: look });
    const lines = page.locator(".message", { has: blocks }).locator(".activity > summary");
    if (look === "widget") for (const line of await lines.all()) if (await line.isVisible()) await line.click();
    const shown = await seen(blocks);
    assert.equal(shown.length, 2, look);
    assert.match(shown[0] ?? "", /Message to codex.*answered/, look);
    assert.match(shown[1] ?? "", /Message to pi.*failed.*did not answer within 300s/, look);
    assert.ok(isRed(await colour(blocks.nth(1).locator(".state"), "color")), look);
    assert.ok(!isRed(await colour(blocks.nth(0).locator(".state"), "color")), look);
  }
});

test("the first line of a failed call contains the reason", async (t) => {
  const { page } = await open(t, "words");
  const why = /No such file: notes\.txt/;
  const message = page.locator('.message[data-response-id="r3"]');
  assert.match(await message.locator(".activity > summary").innerText(), why);
  const { page: tools, answer } = await open(t, "tools");
  const first = answer.locator('.tool-block[data-state="failed"]').first();
  const reason = await first.locator("> details > summary > .why").textContent();
  assert.ok(reason);
  const line = await answer.locator(".activity > summary").innerText();
  assert.ok(line.includes(`2 failed, first: ${reason}`), line);
  await tools.close();
  for (const look of ["badges", "panels", "timeline"]) {
    await setRoot(page, { toolDisplay: look });
    assert.match((await seen(message.locator(".why"))).join(), why, look);
    assert.doesNotMatch(await message.innerText(), /Looked in/, look);
  }
});

test("every look shows that a call is retried", async (t) => {
  const { page } = await open(t, "words");
  const message = page.locator('.message[data-response-id="r7"]');
  assert.match(await message.locator(".activity > summary").innerText(), /http_get.*⟳ Retrying \(2\/3\)/s);
  for (const look of ["panels", "timeline"]) {
    await setRoot(page, { toolDisplay: look });
    assert.deepEqual(await seen(message.locator(".tool-block .retrying")), ["⟳ Retrying (2/3)"], look);
  }
  await setRoot(page, { toolDisplay: "badges" });
  assert.deepEqual(await seen(message.locator(".badge > .state")), ["⟳ Retrying (2/3)"], "badges");
});

test("the first line of a failed call stays one line", async (t) => {
  const { page } = await open(t, "words");
  const block = page.locator('.tool-block[data-call-id="r3.1"]');
  const summary = block.locator("> details > summary");
  await summary.locator(".about").evaluate((it) => void (it.textContent = "path: 'a/very/long/folder' ".repeat(20)));
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    for (const look of LOOKS.filter((it) => it !== "badges")) {
      await setRoot(page, { toolDisplay: look });
      const line = page.locator('.message[data-response-id="r3"] .activity > summary');
      if (look === "widget" && !(await summary.isVisible())) await line.click();
      const boxes = await summary.evaluate((it) =>
        [it, ...it.querySelectorAll(":scope .name, :scope > :is(.state, .chevron, .why)")].map((it) => {
          const { top, bottom, left, right } = it.getBoundingClientRect();
          return { top, bottom, left, right };
        }),
      );
      const [whole, name, state, chevron, why] = boxes;
      assert.ok(whole && name && state && chevron && why);
      const middle = (name.top + name.bottom) / 2;
      for (const it of [state, chevron]) {
        assert.ok(it.top < middle && middle < it.bottom, `${look} ${width}: on the line of the name`);
        assert.ok(it.left >= whole.left && it.right <= whole.right, `${look} ${width}: within the block`);
      }
      assert.ok(why.top >= name.bottom - 2 && why.bottom <= whole.bottom, `${look} ${width}: the reason is below`);
    }
  }
});

test("an unmeasured duration is not shown as 0ms", async (t) => {
  const { page } = await open(t, "words", "panels");
  const message = page.locator('.message[data-response-id="r1"]');
  assert.doesNotMatch(await message.innerText(), /0ms/);
  assert.equal(await message.locator(".timing").innerText(), "Assistant");
});

test("panels: a click shows arguments and result as in the contract", async (t) => {
  const { page } = await open(t, "words", "panels");
  const block = page.locator('.tool-block[data-call-id="r6.1"]');
  const summary = block.locator("> details > summary");
  const line = await summary.boundingBox();
  assert.ok(line && line.height < 40, "one line");
  await summary.click();
  assert.deepEqual(await seen(block.locator(".brief p")), [
    "Args: query: 'dbplus', types: ['program']",
    "Result: Found 3 entities",
  ]);
  const chevron = await summary.locator(".chevron").evaluate((it) => getComputedStyle(it, "::before").content);
  assert.equal(chevron, '"▼"');
});

test("thinking is accessible while tool calls are hidden", async (t) => {
  for (const name of ["thinking", "tools"]) {
    const { page } = await open(t, name);
    for (const look of LOOKS) {
      await setRoot(page, { toolDisplay: look, showToolCalls: "false", showThinking: "true" });
      const [all, shown] = await Promise.all([
        page.locator(".parts > .thinking").count(),
        page.locator(".parts > .thinking").filter({ visible: true }).count(),
      ]);
      assert.equal(shown, all, `${name} ${look}`);
      await setRoot(page, { showThinking: "false" });
      assert.equal(await page.locator(".thinking").filter({ visible: true }).count(), 0, `${name} ${look}`);
    }
    await page.close();
  }
});
