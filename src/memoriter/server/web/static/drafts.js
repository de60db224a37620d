// Drafts: what was typed into a form and is not saved yet. They stay in this browser until they are saved, discarded or
// expire, so that a closed dialog, a reload, an ended session and a restarted gateway lose nothing.

import { agent } from "./api.js";
import { remember, remembered, rememberedNames } from "./prefs.js";

const MAX_AGE_S = 30 * 86_400;

const nameOf = (key) => `draft.${agent()}.${key}`;

/** Keep what a form holds. `base` is what the reader saw when they began. */
export function keepDraft(key, values, base = null) {
  remember(nameOf(key), JSON.stringify({ values, base, at: Date.now() / 1000 }));
}

/** Return a draft `{ values, base, at }`, or null. */
export function draftOf(key) {
  return parsed(nameOf(key));
}

export function dropDraft(key) {
  remember(nameOf(key), null);
}

/** End the draft of a form whose action succeeded. A field that loses the focus later must not keep it again. */
export function endDraft(draft) {
  draft.ended = true;
  dropDraft(draft.key);
}

/** Delete the drafts of memories that were forgotten. */
export function dropDraftsOf(ids) {
  for (const name of rememberedNames("draft.")) if (ids.some((id) => name.includes(id))) remember(name, null);
}

/** Return the number of drafts, and delete old ones. */
export function countDrafts() {
  const names = rememberedNames("draft.");
  const old = names.filter((name) => !(parsed(name)?.at > Date.now() / 1000 - MAX_AGE_S));
  for (const name of old) remember(name, null);
  return names.length - old.length;
}

function parsed(name) {
  try {
    return JSON.parse(remembered(name));
  } catch {
    return null;
  }
}
