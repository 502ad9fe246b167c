// Signing out, as shown on open pages.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { startCallboard } from "./callboard.mjs";

const browser = useBrowser();

test("signing out everywhere shows the sign-in page in every browser", async (t) => {
  const callboard = await startCallboard(t);
  const open = async () => {
    const page = await browser.newPage(t);
    await page.goto(callboard.url);
    await page.locator("#composer").waitFor();
    return page;
  };
  const [here, there] = [await open(), await open()];
  await here.getByRole("button", { name: "Settings" }).click();
  await here.getByRole("button", { name: "Sign out everywhere" }).click();
  for (const page of [here, there]) await page.getByRole("heading", { name: "Sign in to Callboard" }).waitFor();
});

test("the address /sign-out is a page with a button", async (t) => {
  const callboard = await startCallboard(t);
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  await page.goto(`${callboard.base}sign-out`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Callboard" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Sign in" }).getAttribute("class"), "primary");
});
