// Clients of versions 5 and 6 of the AI SDK: the newest release of each and its first.

import { release } from "./ai_sdk.mjs";
import { takeCases } from "./chat_cases.mjs";

takeCases(await Promise.all(["ai-5", "ai-5-first", "ai-6", "ai-6-first"].map(release)));
