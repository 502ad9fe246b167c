// Clients of version 7 of the AI SDK, which needs a newer Node than the other tests.

import { release } from "./ai_sdk.mjs";
import { takeCases } from "./chat_cases.mjs";
import { runsOnPinnedNode } from "./pinned_node.mjs";

if (await runsOnPinnedNode(import.meta.url)) {
  takeCases(await Promise.all(["ai-7", "ai-7-first"].map(release)));
}
