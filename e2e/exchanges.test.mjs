// Exchanges on the page: the block in the asking session, the message in the other session, the
// reply within the block, the diagram, and the exported file.

import assert from "node:assert/strict";
import { test } from "node:test";

import { listFaults, useBrowser } from "./browser.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { answered, assertSameAfterReload, card, openSession, sendMessage, sessionOf } from "./drive.mjs";

const browser = useBrowser();

/** Demo agents of these names. @param {string} pace */
const demos = (pace) =>
  [`demo.pace = "${pace}"`, ...["a", "b", "c"].map((id) => `[[agents]]\nid = "${id}"\nkind = "demo"`)].join("\n");

/** @param {any} t @param {string} pace @param {object} [options] */
async function open(t, pace, options = {}) {
  const callboard = await startCallboard(t, { config: demos(pace) });
  const { id } = await callboard.api("sessions", { body: { agent: "a" } });
  return { callboard, page: await openSession(t, browser, callboard, id, options) };
}

test("an exchange is a block with its reply, live and after a reload", async (t) => {
  const { page } = await open(t, "instant");
  await sendMessage(page, "ask b: time in Paris");
  await answered(page);
  await page.locator(".activity > summary").first().click();
  const block = page.locator(".exchange");
  assert.match((await block.getAttribute("class")) ?? "", /agent-callback success/);
  assert.equal(await block.locator(".state").first().innerText(), "answered");
  await assertSameAfterReload(page);

  await page.locator(".activity > summary").first().click();
  await block.locator("summary").first().click();
  const inside = block.locator(".embedded .message");
  await inside.getByText("In Paris it is").waitFor();
  assert.equal(await inside.locator(".tool-block").count(), 1, "what the other agent called is there");
  await block.getByRole("link", { name: "Open its session" }).click();
  await page.getByText("From a").waitFor();
  await page.locator(".from a").click();
  await page.locator(".exchange").first().waitFor({ state: "attached" });
});

test("the activity of the other agent is shown live", async (t) => {
  const { callboard, page } = await open(t, "natural");
  await sendMessage(page, "ask b: tell me a story");
  const block = page.locator(".exchange");
  await page.locator(".activity > summary").click();
  await block.locator("> details > summary").click();
  await block.locator(".embedded").getByText("Once there was").waitFor();
  const shown = () => block.locator(".embedded .text").innerText();
  const before = await shown();
  await until(async () => (await shown()).length > before.length + 40);

  // Losing the connection also ends its subscriptions.
  const [, other] = (await callboard.api("sessions")).sessions.map((/** @type {any} */ it) => it.id).toSorted();
  await page.keyboard.press("Escape");
  await answered(page);
  assert.equal(await block.locator("> details > summary .state").innerText(), "⚠ Interrupted");
  await block.locator(".embedded .interrupted-mark").waitFor();
  // A finished message has no innerText until the frame in which the browser finds it in view.
  let live = "";
  await until(async () => (live = await shown()) !== "");
  await page.goto(`${callboard.base}s/${other}`);
  assert.equal(await page.locator(".messages .text").innerText(), live, "the same as in its own session");
});

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
for (const [where, options] of Object.entries({ "": {}, ", on a phone": PHONE })) {
test(`a person decides for the other agent in the asking session${where}`, async (t) => {
  const { page } = await open(t, "instant", options);
  await sendMessage(page, "ask b: run touch made");
  const asked = card(page);
  assert.match(await asked.innerText(), /Run a command.*touch made/s);
  await page.getByText("b is waiting for you").first().waitFor();
  await asked.getByRole("button", { name: "Allow once" }).click();
  await answered(page);
  await asked.waitFor({ state: "detached" });
  await page.locator(".activity > summary").click();
  assert.equal(await page.locator(".exchange > details > summary .state").innerText(), "answered");
});
}

test("one Escape does not stop a run whose other agent asks", async (t) => {
  const { callboard, page } = await open(t, "instant");
  // The card is never fetched.
  await page.route(/part=questions/, () => {});
  await sendMessage(page, "ask b: run touch made");
  await page.getByText("b is waiting for you").first().waitFor();
  assert.equal(await card(page).count(), 0);
  await page.keyboard.press("Escape");
  await page.getByText("Press Esc again to stop the run").waitFor();
  const ends = async () => (await callboard.events(sessionOf(page))).filter(({ type }) => type === "cancel_requested").length;
  assert.equal(await ends(), 0);
  await page.keyboard.press("Escape");
  await until(async () => (await ends()) === 1);
});

test("a background reply is a message of that agent", async (t) => {
  const { page } = await open(t, "instant");
  await sendMessage(page, "ask b in the background: time in Lima");
  await answered(page, 2);
  const message = page.locator(".message[data-callback]");
  assert.match(await message.innerText(), /Answer from b/);
  await assertSameAfterReload(page);
});

test("the diagram of agents has a text alternative", async (t) => {
  const { page } = await open(t, "instant");
  assert.equal(await page.locator(".sequence").isVisible(), false);
  await sendMessage(page, "ask b: ask c: time in Paris");
  await answered(page);
  await page.locator(".sequence > summary").click();
  const picture = page.getByRole("img", { name: "Who asked whom, and when" });
  assert.deepEqual(await picture.locator(".who").allTextContents(), ["You", "a", "b"]);
  assert.equal(await picture.locator("g").count(), 4);
  assert.match(await page.locator(".sequence .sr").innerText(), /a to b: ask c: time in Paris/);
  assert.deepEqual(await listFaults(page), []);
});

test("a page without script links to the other session", async (t) => {
  const { callboard, page } = await open(t, "instant");
  await sendMessage(page, "ask b: time in Paris");
  await answered(page);
  const url = page.url();
  const plain = await browser.newPage(t, { javaScriptEnabled: false });
  await plain.goto(`${url.split("#")[0]}?token=${callboard.token}`);
  await plain.locator(".activity > summary").click();
  await plain.locator(".exchange > details > summary").click();
  assert.match(await plain.locator(".exchange .end").innerText(), /In Paris it is/);
  await plain.getByRole("link", { name: "Open its session" }).click();
  await plain.getByText("From a").waitFor();
});

test("an exported file contains the replies of other agents", async (t) => {
  const { callboard, page } = await open(t, "instant");
  await sendMessage(page, "ask b: ask c: time in Paris");
  await answered(page);
  const id = new URL(page.url()).pathname.slice("/s/".length);
  const headers = { Authorization: `Bearer ${callboard.token}` };
  const html = await (await fetch(`${callboard.base}api/sessions/${id}/export`, { headers })).text();
  const file = await browser.newPage(t);
  await file.setContent(html);
  assert.equal(await file.locator(".peer > .message").count(), 2, "and what that one asked in turn");
  assert.equal(await file.locator("a.there[href]").count(), 0, "nothing leads out of it");
});

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  for (const width of [390, 1280]) {
    test(`an exchange block fits a screen of ${width}, ${colorScheme}`, async (t) => {
      const viewport = { width, height: 900 };
      const { page } = await open(t, "instant", { viewport, colorScheme });
      await sendMessage(page, "ask b: ask c: time in Paris, then list the files");
      await answered(page);
      await page.locator(".sequence > summary").click();
      await page.locator(".activity > summary").first().click();
      await page.locator(".exchange > details > summary").first().click();
      await page.locator(".embedded .activity > summary").click();
      await page.locator(".embedded .exchange > details > summary").click();
      await page.locator(".embedded .embedded .message").waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
      assert.deepEqual(await listFaults(page), []);
      if (process.env.SHOTS) {
        await page.screenshot({ path: `${process.env.SHOTS}/exchange-${colorScheme}-${width}.png`, fullPage: true });
      }
    });
  }
}

test("an agent's message does not go into a person's session", async (t) => {
  const { callboard, page } = await open(t, "instant");
  const own = await callboard.converse("help");
  await callboard.api(`sessions/${own}/messages`, { body: { text: "help" } });
  await sendMessage(page, "ask demo: time in Paris");
  await answered(page);
  const messages = (await callboard.events(own)).filter((/** @type {any} */ it) => it.type === "user_message");
  assert.deepEqual(messages.map((/** @type {any} */ it) => it.text), ["help", "help"]);
  assert.equal((await callboard.api("sessions")).sessions.length, 3);
});

test("the diagram of four agents fits a screen of 1280", async (t) => {
  const config = demos("instant") + '\n[[agents]]\nid = "d"\nkind = "demo"';
  const callboard = await startCallboard(t, { config });
  const { id } = await callboard.api("sessions", { body: { agent: "a" } });
  const page = await openSession(t, browser, callboard, id);
  for (const [idx, agent] of ["b", "c", "d"].entries()) {
    await sendMessage(page, `ask ${agent}: time in Paris`);
    await answered(page, idx + 1);
  }
  await page.locator(".sequence > summary").click();
  const picture = page.locator(".picture");
  assert.deepEqual(await picture.locator(".who").allTextContents(), ["You", "a", "b", "c", "d"]);
  assert.ok(await picture.evaluate((it) => it.scrollWidth <= it.clientWidth), "nothing is cut off");
});
