// Reading: scroll position while the page grows, the past, phones, dark mode, files.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { useBrowser } from "./browser.mjs";
import { longLog, startCallboard, until } from "./callboard.mjs";
import {
  LOOKS,
  contentWidth,
  conversationText,
  openAll,
  openSession,
  sendMessage,
  seen,
  sessionOf,
  setRoot,
} from "./drive.mjs";
import { openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

/** @typedef {import("playwright-core").Page} Page */

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
/** One dot. */
const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==",
  "base64",
);
const SMALL = { viewport: { width: 1000, height: 500 } };

/** @param {Page} page */
const atEnd = (page) =>
  page.waitForFunction(
    () => innerHeight + scrollY >= document.documentElement.scrollHeight - 2,
  );

test("the page follows its end only while the reader is there", async (t) => {
  const page = await browser.newPage(t, SMALL);
  const { first, patches } = gallery.replay("tools");
  const { patch } = await openDrawn(page, "tools", first);
  await setRoot(page, { toolDisplay: "timeline" });
  const middle = patches.findIndex(({ seq }) => seq === 100);
  for (const step of patches.slice(0, middle)) {
    await patch(step);
    await atEnd(page);
  }
  const latest = page.getByRole("button", { name: "Jump to latest" });
  assert.ok(!(await latest.isVisible()));
  await page.mouse.move(600, 250);
  await page.mouse.wheel(0, -400);
  await latest.waitFor();
  const line = page.locator(".tool-block").first();
  const before = (await line.boundingBox())?.y;
  for (const step of patches.slice(middle)) await patch(step);
  assert.equal((await line.boundingBox())?.y, before, "the line that is read moved");
  const ways = [() => latest.click(), () => page.keyboard.press("Alt+g")];
  for (const goBack of ways) {
    await page.mouse.wheel(0, -400);
    await latest.waitFor();
    await goBack();
    await atEnd(page);
    await latest.waitFor({ state: "hidden" });
  }
});

test("scrolling back while text arrives stops following the end", async (t) => {
  const page = await browser.newPage(t, SMALL);
  const { first, patches } = gallery.replay("tools");
  const { patch } = await openDrawn(page, "tools", first);
  await setRoot(page, { toolDisplay: "timeline" });
  const latest = page.getByRole("button", { name: "Jump to latest" });
  const middle = patches.findIndex(({ seq }) => seq === 100);
  for (const step of patches.slice(0, middle)) await patch(step);
  for (const step of patches.slice(middle)) {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    await atEnd(page);
    await latest.waitFor({ state: "hidden" });
    await page.evaluate(goBackWithNextFrame, 300);
    await patch(step);
    await latest.waitFor();
  }
});

/** Scrolls when the next frame of the connection is read. Runs in the browser. @param {number} distance */
function goBackWithNextFrame(distance) {
  const parse = JSON.parse;
  JSON.parse = (text) => {
    JSON.parse = parse;
    scrollBy({ top: -distance, behavior: "instant" });
    return parse(text);
  };
}

test("opening a block does not move the clicked line", async (t) => {
  const page = await browser.newPage(t, SMALL);
  await openDrawn(page, "tools", gallery.html("tools"));
  await setRoot(page, { toolDisplay: "timeline" });
  for (const block of await page.locator(".tool-block > details > summary").all()) {
    await block.evaluate((it) => it.scrollIntoView({ block: "center" }));
    const before = (await block.boundingBox())?.y;
    await block.click();
    await block.locator("xpath=..").locator("> .inside").waitFor();
    // Any scrolling has happened one frame later.
    await page.evaluate(() => new Promise((resume) => requestAnimationFrame(() => setTimeout(resume))));
    assert.equal((await block.boundingBox())?.y, before);
  }
});

test("a block opened at the end stays in place when more arrives", async (t) => {
  const page = await browser.newPage(t, SMALL);
  const { sendFrame } = await openDrawn(page, "tools", gallery.html("tools"));
  const id = await page.locator(".parts").last().getAttribute("id");
  let seq = 1000;
  /** @param {(string | null)[]} op */
  const patch = async (...op) => {
    sendFrame({ type: "patch", sessionId: "tools", seq: ++seq, ops: [op] });
    await page.waitForFunction((seq) => document.body.dataset.head === String(seq), seq);
  };
  await patch("add", id, '<details id="small"><summary>Open it</summary><p>One line.</p></details>');
  await atEnd(page);
  const line = page.getByText("Open it");
  const before = (await line.boundingBox())?.y;
  await line.click();
  await page.getByText("One line.").waitFor();
  await patch("attr", "small", "data-more", "");
  assert.equal((await line.boundingBox())?.y, before);
});

test("growing output can be fetched again", async (t) => {
  const page = await browser.newPage(t);
  const { sendFrame } = await openDrawn(page, "tools", gallery.html("tools"));
  const id = await page.locator(".parts").last().getAttribute("id");
  let seq = 1000;
  /** @param {string} op @param {string | null} target @param {number} lines */
  const draw = async (op, target, lines) => {
    const gap = `<p class="gap"><a class="show-all" href="/api/lines?n=${lines}" data-action="show-all">Show all ${lines} lines</a></p>`;
    const html = `<div id="grows" class="body cut"><div class="edge">begins</div>${gap}</div>`;
    sendFrame({ type: "patch", sessionId: "tools", seq: ++seq, ops: [[op, target, html]] });
    await page.waitForFunction((seq) => document.body.dataset.head === String(seq), seq);
  };
  await page.route("**/api/lines?*", (route) => {
    const body = `${new URL(route.request().url()).searchParams.get("n")} lines are here`;
    return route.fulfill({ body, contentType: "text/html; charset=utf-8" });
  });
  await draw("add", id, 300);
  await page.getByText("Show all 300 lines").click();
  await page.getByText("300 lines are here").waitFor();
  await draw("put", "grows", 300);
  assert.ok(!(await page.locator("#grows .show-all").isVisible()), "there is no more");
  await draw("put", "grows", 400);
  await page.getByText("300 lines are here").waitFor();
  await page.getByText("Show all 400 lines").click();
  await page.getByText("400 lines are here").waitFor();
  assert.equal(await page.locator("#grows .fetched").count(), 1);
});

test("?at= shows the session of the past and links back", async (t) => {
  const callboard = await startCallboard(t);
  await callboard.importLog("talk", longLog(4));
  const page = await openSession(t, browser, callboard, "talk");
  await page.goto(`${callboard.base}s/talk?at=8`);
  assert.deepEqual(await seen(page.locator(".bubble")), ["Question 0"]);
  assert.ok(!(await page.locator("#composer").isVisible()), "nothing can be said in the past");
  await page.getByRole("link", { name: "Show it as it is now" }).click();
  assert.deepEqual(await seen(page.locator(".bubble")), ["Question 0", "Question 1"]);
});

test("a page of the past offers no actions", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "run touch made");
  await page.locator(".card").waitFor();
  const [asked] = (await callboard.events(sessionOf(page))).slice(-1);
  assert.equal(asked?.type, "tool_approval_requested");
  await page.goto(`${page.url()}?at=${asked.seq}`);
  /** @type {string[]} */
  const changes = [];
  page.on("request", (it) => void (it.method() !== "GET" && changes.push(it.url())));
  await page.getByText("This is the session as it was").waitFor();
  await openAll(page);
  for (const look of LOOKS) {
    await setRoot(page, { toolDisplay: look });
    const offered = page.locator("main :is(button, input, textarea, select)").filter({ visible: true });
    const names = await offered.evaluateAll((all) => all.map((it) => it.ariaLabel));
    assert.deepEqual([...new Set(names)].filter((it) => !/^(Copy|Tool call)/.test(it ?? "")), [], look);
  }
  for (const key of ["1", "2", "3", "n", "Escape"]) await page.keyboard.press(key);
  // All key presses have been handled when this returns.
  await page.evaluate(() => fetch("/healthz"));
  assert.deepEqual(changes, []);
  assert.equal((await callboard.api(`sessions/${sessionOf(page)}`)).state, "waiting");
});

/** A session's export, opened as a file. @param {any} t @param {any} callboard @param {string} session @param {object} options */
async function openExport(t, callboard, session, options) {
  const folder = await mkdtemp(path.join(tmpdir(), "callboard-export-"));
  t.after(() => rm(folder, { recursive: true }));
  const response = await fetch(`${callboard.base}api/sessions/${session}/export?format=html`, {
    headers: { Authorization: `Bearer ${callboard.token}` },
  });
  const file = path.join(folder, "talk.html");
  await writeFile(file, await response.text());
  const page = await browser.newPage(t, { offline: true, ...options });
  await page.goto(pathToFileURL(file).href);
  return /** @type {Page} */ (page);
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`the export has only working controls in a browser ${how} script`, async (t) => {
    const callboard = await startCallboard(t);
    const session = await callboard.converse("what time is it in Tokyo", "break");
    await callboard.api(`sessions/${session}/messages`, { body: { text: "run touch made" } });
    await until(async () => (await callboard.api(`sessions/${session}`)).state === "waiting");
    for (const toolDisplay of LOOKS) {
      await callboard.api("settings", { method: "PATCH", body: { toolDisplay } });
      const page = await openExport(t, callboard, session, { javaScriptEnabled });
      for (const it of await page.locator(".activity > summary").filter({ visible: true }).all()) await it.click();
      const blocks = page.locator(".tool-block > details > summary").filter({ visible: true });
      for (const it of await blocks.all()) await it.click();
      const controls = page.locator("button, input, textarea, select").filter({ visible: true });
      const badges = page.locator(".tool-call-badge").filter({ visible: true });
      assert.equal(await controls.count(), await badges.count(), toolDisplay);
      assert.equal((await seen(page.getByRole("heading", { level: 1 })))[0], "what time is it in Tokyo");
    }
  });

  test(`a badge of the export shows its call, in a browser ${how} script`, async (t) => {
    const callboard = await startCallboard(t);
    await callboard.api("settings", { method: "PATCH", body: { toolDisplay: "badges" } });
    // The badges are in an earlier message, which is drawn only when it comes into view.
    const session = await callboard.converse("time in Tokyo and Paris", "help", "help", "help");
    const page = await openExport(t, callboard, session, { javaScriptEnabled });
    const badges = page.locator(".tool-call-badge");
    const shown = page.locator(".tooltip").filter({ visible: true });
    const isInSight = async (/** @type {RegExp} */ words) => {
      await shown.waitFor();
      assert.match(await shown.innerText(), words);
      const { x, y, width, height } = (await shown.boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
      assert.ok(x >= 0 && y >= 0 && x + width <= 1280 && y + height <= 800, `${x} ${y} ${width} ${height}`);
    };
    await badges.first().hover();
    await isInSight(/"zone": "Asia\/Tokyo"/);
    await shown.hover();
    await isInSight(/"zone": "Asia\/Tokyo"/);
    await page.mouse.move(0, 0);
    await shown.waitFor({ state: "hidden" });
    await badges.last().focus();
    await isInSight(/"zone": "Europe\/Paris"/);
  });
}

test("the export opens as a file without script and shows the same", async (t) => {
  const callboard = await startCallboard(t, { files: { "notes.txt": "buy oil" } });
  const session = await callboard.converse("read notes.txt", "write a report about tea");
  const served = await openSession(t, browser, callboard, session);
  const page = await openExport(t, callboard, session, { javaScriptEnabled: false });
  const words = ".bubble, .messages .text, .tool-block .name, .tool-block .body";
  assert.deepEqual(
    await page.locator(words).allTextContents(),
    await served.locator(words).allTextContents(),
  );
  await page.locator(".activity > summary").first().click();
  await page.locator(".tool-block > details > summary").first().click();
  assert.match((await seen(page.locator(".tool-block .body"))).join(), /buy oil/);
});

test("no log on a phone needs sideways scrolling in any look", async (t) => {
  for (const name of ["home", ...gallery.names]) {
    const page = await browser.newPage(t, PHONE);
    await openDrawn(page, name, gallery.html(name));
    for (const look of LOOKS) {
      await setRoot(page, { toolDisplay: look });
      assert.equal(await contentWidth(page), 390, `${name}, ${look}, closed`);
    }
    await openAll(page);
    for (const look of LOOKS) {
      await setRoot(page, { toolDisplay: look });
      assert.equal(await contentWidth(page), 390, `${name}, ${look}, open`);
    }
    await page.close();
  }
});

test("touch targets on a phone are large enough", async (t) => {
  for (const [name, look] of [["home", "widget"], ["tools", "widget"], ["tools", "badges"],
    ["tools", "timeline"], ["approval", "widget"], ["queue", "widget"], ["failed", "panels"]]) {
    const page = await browser.newPage(t, PHONE);
    await openDrawn(page, name, gallery.html(name));
    await setRoot(page, { toolDisplay: look });
    assert.deepEqual(await page.evaluate(smallTargets, "main"), [], `${name}, ${look}`);
    // A card that covers the page leaves few touch targets.
    if (name !== "approval") await openAll(page);
    assert.deepEqual(await page.evaluate(smallTargets, "main"), [], `${name}, ${look}, open`);
    await page.locator(".drawer").click();
    await page.waitForFunction(() => document.getElementById("sidebar")?.getAnimations().length === 0);
    assert.deepEqual(await page.evaluate(smallTargets, "#sidebar"), [], `${name}, the list`);
    await page.keyboard.press("Escape");
    const menu = page.locator("main [data-action=session-menu]");
    if (await menu.count()) {
      await menu.click();
      assert.deepEqual(await page.evaluate(smallTargets, "#menu"), [], `${name}, the menu`);
    }
    await page.close();
  }
});

/** The targets that a finger of 44 pixels misses when it aims at their centre. Runs in the browser. @param {string} within */
function smallTargets(within) {
  const half = 21;
  const all = document.querySelectorAll(`${within} :is(button, select, summary, input, a)`);
  const hidden = { visibilityProperty: true, contentVisibilityAuto: false };
  const targets = [...all].filter((it) => it.checkVisibility(hidden) && !it.closest(".text, p a, .body, .remark"));
  return targets.flatMap((it) => {
    it.scrollIntoView({ block: "center", behavior: "instant" });
    const { left, right, top, bottom } = it.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const isHit = [[0, -half], [0, half], [-half, 0], [half, 0]].every(([dx = 0, dy = 0]) => {
      const hit = document.elementFromPoint(x + dx, y + dy);
      return it === hit || it.contains(hit);
    });
    return isHit ? [] : [`${it.className || it.tagName} ${it.textContent?.trim().slice(0, 30)}`];
  });
}

test("the list on a phone is a drawer with a button, swipe, tap and Escape", async (t) => {
  const page = await browser.newPage(t, PHONE);
  await openDrawn(page, "tools", gallery.html("tools"));
  const list = page.getByRole("navigation", { name: "Sessions" });
  assert.ok(!(await list.isVisible()));
  await page.getByRole("button", { name: "Sessions" }).tap();
  await list.waitFor();
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Sessions" }).tap();
  await list.waitFor();
  await page.touchscreen.tap(380, 400);
  await list.waitFor({ state: "hidden" });

  await swipe(page, 5, 250);
  await list.waitFor();
  await swipe(page, 250, 20);
  await list.waitFor({ state: "hidden" });
});

/** @param {Page} page @param {number} from @param {number} to */
async function swipe(page, from, to) {
  const devtools = await page.context().newCDPSession(page);
  const touch = (/** @type {any} */ type, /** @type {number[]} */ ...xs) =>
    devtools.send("Input.dispatchTouchEvent", { type, touchPoints: xs.map((x) => ({ x, y: 300 })) });
  await touch("touchStart", from);
  await touch("touchMove", to);
  await touch("touchEnd");
}

test("the theme follows the system or the setting", async (t) => {
  const page = await browser.newPage(t, { colorScheme: "dark" });
  await openDrawn(page, "tools", gallery.html("tools"));
  const brightness = () =>
    page.evaluate(() => {
      const canvas = new OffscreenCanvas(1, 1).getContext("2d");
      if (!canvas) return -1;
      canvas.fillStyle = getComputedStyle(document.documentElement).backgroundColor;
      canvas.fillRect(0, 0, 1, 1);
      return canvas.getImageData(0, 0, 1, 1).data[0] ?? -1;
    });
  assert.ok((await brightness()) < 60, "the system is dark");
  await setRoot(page, { theme: "light" });
  assert.ok((await brightness()) > 200, "the reader wants it light");
  await page.emulateMedia({ colorScheme: "light" });
  await setRoot(page, { theme: "dark" });
  assert.ok((await brightness()) < 60, "the reader wants it dark");
  await setRoot(page, { theme: "system" });
  assert.ok((await brightness()) > 200, "the system is light");
});

test("long output is cut and can be fetched whole", async (t) => {
  const callboard = await startCallboard(t);
  const text = Array.from({ length: 9000 }, (_, idx) => `line ${idx}`).join("\n");
  const call = { responseId: "r1", callId: "r1.0" };
  await callboard.importLog("long", [
    { type: "session_created", agent: "demo", title: "Long output" },
    { type: "run_start", responseId: "r1", agent: "demo", trigger: "user" },
    { ...call, type: "tool_call_start", toolName: "fetch", executor: "agent", arguments: "{}" },
    { ...call, type: "tool_arguments_done", arguments: "{}", summary: "", validation: "not_required" },
    { ...call, type: "tool_output_delta", stream: "stdout", offset: 0, delta: `\x1b[31mred\x1b[0m ${text}` },
    { ...call, type: "tool_result", toolName: "fetch", ok: true, result: null, durationMs: 1 },
    { type: "run_finish", responseId: "r1", status: "completed", durationMs: 1 },
  ]);
  const page = await openSession(t, browser, callboard, "long");
  await openAll(page);
  assert.doesNotMatch(await conversationText(page), /line 4500\b/);
  await page.locator(".show-all").click();
  await page.locator(".fetched").waitFor();
  assert.match(await page.locator(".fetched").innerText(), /^red line 0\b[^]*line 4500\b/);
  const red = page.locator(".fetched .ansi-fg-1");
  assert.equal(await red.innerText(), "red");
  const colour = await red.evaluate((it) => getComputedStyle(it).color);
  const plain = await page.locator(".fetched").evaluate((it) => getComputedStyle(it).color);
  assert.notEqual(colour, plain);
  await page.getByRole("button", { name: "Show less" }).click();
  assert.doesNotMatch(await conversationText(page), /line 4500\b/);
});

test("a file is highlighted when its block is opened", async (t) => {
  const callboard = await startCallboard(t, { files: { "main.rs": "fn main() {\n    let a = 1;\n}\n" } });
  const session = await callboard.converse("read main.rs");
  const page = await openSession(t, browser, callboard, session);
  const file = page.locator(".file");
  const text = await file.textContent();
  assert.match(text ?? "", /fn main/);
  assert.equal(await file.locator("[class^=hl-]").count(), 0);
  await page.locator(".activity > summary").click();
  await page.locator(".tool-block > details > summary").click();
  await file.locator(".fetched .hl-keyword").first().waitFor();
  assert.equal(await file.locator(".fetched").textContent(), text);
  assert.equal(await file.locator(":scope > pre").isVisible(), false, "it is there once");
});

test("a remote picture is shown on a click, if the setting allows it", async (t) => {
  const callboard = await startCallboard(t);
  await callboard.importLog("pictures", [
    { type: "session_created", agent: "demo", title: "Pictures" },
    { type: "run_start", responseId: "r1", agent: "demo", trigger: "user" },
    { type: "text_start", responseId: "r1", partId: "r1.0" },
    { type: "text_done", responseId: "r1", partId: "r1.0", text: "![a map](http://pictures.test/map.png)" },
    { type: "run_finish", responseId: "r1", status: "completed", durationMs: 1 },
  ]);
  const page = await openSession(t, browser, callboard, "pictures");
  /** @type {string[]} */
  const asked = [];
  await page.context().route("http://pictures.test/**", (route) => {
    asked.push(route.request().resourceType());
    return route.fulfill({ contentType: "image/png", body: PICTURE });
  });
  const link = page.getByRole("link", { name: "a map" });
  const [elsewhere] = await Promise.all([page.waitForEvent("popup"), link.click()]);
  await elsewhere.close();
  assert.equal(await link.locator("img").count(), 0, "nobody has allowed it");

  await page.getByRole("button", { name: "Settings" }).click();
  const reloaded = page.waitForEvent("load");
  await page.getByLabel("Load external images on click").check();
  await reloaded;
  assert.deepEqual(asked, ["document"], "not without a click");
  await link.click();
  await page.waitForFunction(() => {
    const picture = /** @type {HTMLImageElement | null} */ (document.querySelector(".remote-image img"));
    return picture?.naturalWidth === 1;
  });
  assert.deepEqual(asked, ["document", "image"]);
});
