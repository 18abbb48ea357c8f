// What the pages share: numbers, the document, the server and the bearer token. The pages ask the API
// of the server that they came from and change nothing there. Names come from callers, so all text
// goes through textContent.

export const byID = (id) => document.getElementById(id);
const tokenKey = "weir bearer token";
const patienceMS = 5000; // for one answer

/* Numbers. */

export const whole = new Intl.NumberFormat("en");

export const count = (n, one, many) => `${whole.format(n)} ${n === 1 ? one : many}`;

/* The document. */

export function element(name, className, ...children) {
  const e = document.createElement(name);
  if (className) e.className = className;
  e.append(...children.filter((c) => c !== null));
  return e;
}

// write leaves what is there alone if it says the same, so that a selection stays.
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const show = (node, visible) => { node.hidden = !visible; };

export function cell(label, className, ...children) {
  const td = element("td", className, ...children);
  td.dataset.label = label;
  td.setAttribute("role", "cell");
  return td;
}

export function row(...cells) {
  const tr = element("tr", "", ...cells);
  tr.setAttribute("role", "row");
  return tr;
}

const kept = new WeakMap(); // of each parent, its children by key

// sync makes the children of parent those of items, in order. Elements stay as long as their keys, so
// that focus and selection do too.
export function sync(parent, items, keyOf, make, fill) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const old = kept.get(parent) ?? new Map();
  const now = new Map();
  for (const item of items) {
    let key = keyOf(item);
    while (now.has(key)) key += " ";
    now.set(key, [old.get(key)?.[0] ?? make(item), item]);
  }
  for (const [key, [e]] of old) if (!now.has(key)) e.remove();
  let next = parent.firstElementChild;
  for (const [e, item] of now.values()) {
    if (e === next) next = next.nextElementSibling;
    else parent.insertBefore(e, next);
    fill(e, item);
  }
  kept.set(parent, now);
  // An element that was moved has lost the focus.
  if (focused && focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/* The server. */

// Problem is an answer that is none: status 0 where there was no answer at all.
export class Problem extends Error {
  constructor(status, detail, code = "") {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export let token = "";
try {
  token = sessionStorage.getItem(tokenKey) ?? "";
} catch { /* storage is switched off: the page's memory has to do */ }

function keepToken(value) {
  token = value;
  try {
    if (value) sessionStorage.setItem(tokenKey, value);
    else sessionStorage.removeItem(tokenKey);
  } catch { /* as above */ }
}

// parse reads JSON without rounding the numbers that only 64 bits hold, where the browser can.
const parse = (text) => JSON.parse(text, (_, value, context) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
    ? BigInt(context.source) : value);

export async function ask(path) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response, text;
  try {
    response = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(patienceMS) });
    text = await response.text();
  } catch {
    throw new Problem(0, "no answer");
  }
  let body;
  try {
    body = parse(text);
  } catch {
    throw new Problem(response.ok ? 502 : response.status, "the answer is not JSON");
  }
  if (!response.ok) throw new Problem(response.status, detailOf(body) || response.statusText, body.code);
  return body;
}

const detailOf = (body) =>
  body.field && body.reason ? `${body.field} “${body.value ?? ""}” ${body.reason}` : body.detail;

export function connection(state, text) {
  byID("connection").dataset.state = state;
  write(byID("connection"), text);
}

/* The bearer token. */

// showLock hides what the page shows and asks for a bearer token.
export function showLock(problem) {
  show(byID("content"), false);
  show(byID("unlock"), true);
  show(byID("forget"), false);
  connection("locked", "Needs a bearer token");
  const said = problem.status === 403
    ? "The role of this bearer token is too weak to read."
    : "The server does not know this bearer token.";
  write(byID("unlock-message"), token ? said : "");
  byID("token").setAttribute("aria-invalid", String(token !== ""));
  keepToken("");
  byID("token").focus();
}

// takeToken keeps the bearer token that was entered, and shows the page again. It returns false if
// the text cannot be one.
export function takeToken() {
  const value = byID("token").value.trim();
  if (!/^[\x21-\x7e]+$/.test(value)) {
    write(byID("unlock-message"), "A bearer token has no spaces and only ASCII characters.");
    return false;
  }
  keepToken(value);
  byID("token").value = "";
  show(byID("unlock"), false);
  show(byID("content"), true);
  byID("main").focus({ preventScroll: true });
  connection("starting", "Connecting");
  return true;
}

export function forget() {
  keepToken("");
  location.reload(); // what it has shown goes too
}
