// The page that shows use over time.

import {
  Problem, ask, byID, cell, connection, count, element, forget, row, show, showLock, takeToken, token,
  whole, write,
} from "./common.js";

const windowsMost = 10000; // of one question
const rowsAtFirst = 14;
const seriesMost = 8; // colours; the smallest series share the last one
const columnsMost = 5000; // of a longer time, only the part with usage is drawn
const hourMS = 3600000;

/* Windows of time, in UTC. */

const pad = (n) => String(n).padStart(2, "0");
const dayText = (d) => `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())}`;
const hourText = (d) => `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}`;
const monthName = (d) => d.toLocaleString("en", { month: "short", timeZone: "UTC" });

// kinds has, for each window, how it begins, how many are shown by default, how many are asked for at
// once (a store may add up a month from hundreds of hours), and how it is named.
const kinds = {
  hourly: {
    word: "hour", usual: 24, page: 1000,
    start: (ms) => ms - (ms % hourMS),
    step: (ms, n) => ms + n * hourMS,
    name: (d) => `${dayText(d)} ${hourText(d)}`,
    tick: (d) => (d.getUTCHours() === 0 ? `${monthName(d)} ${d.getUTCDate()}` : hourText(d)),
  },
  daily: {
    word: "day", usual: 31, page: 250,
    start: (ms) => ms - (ms % (24 * hourMS)),
    step: (ms, n) => ms + n * 24 * hourMS,
    name: dayText,
    tick: (d) => `${monthName(d)} ${d.getUTCDate()}`,
  },
  monthly: {
    word: "month", usual: 12, page: 50,
    start: (ms) => Date.UTC(new Date(ms).getUTCFullYear(), new Date(ms).getUTCMonth(), 1),
    step: (ms, n) => Date.UTC(new Date(ms).getUTCFullYear(), new Date(ms).getUTCMonth() + n, 1),
    name: (d) => `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}`,
    tick: (d) => (d.getUTCMonth() === 0 ? String(d.getUTCFullYear()) : monthName(d)),
  },
};

/* What is asked. The address has it, so that it can be sent to others. */

const fields = ["entity", "resource", "window", "from", "to", "limit"];

function wanted() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const asked = Object.fromEntries(fields.map((name) => [name, hash.get(name) ?? ""]));
  if (!(asked.window in kinds)) asked.window = "daily";
  return asked;
}

function hashOf(asked) {
  const given = fields.filter((name) => asked[name]).map((name) => [name, asked[name]]);
  return "#" + new URLSearchParams(given);
}

// bounds returns the beginning and the end, and whether the beginning is the default.
function bounds(asked) {
  const kind = kinds[asked.window];
  const end = asked.to ? Date.parse(asked.to) : NaN;
  const last = kind.start(Number.isNaN(end) ? Date.now() : end - 1);
  const usual = kind.step(last, 1 - kind.usual);
  const from = asked.from ? Date.parse(asked.from) : usual;
  return { from, to: Number.isNaN(end) ? kind.step(last, 1) : end, usual: !asked.from };
}

let showing = null; // the answer that is shown
let asking = 0; // numbers the questions, so that a late answer is dropped

async function answerTo(asked) {
  const from = asked.from || new Date(bounds(asked).from).toISOString();
  const query = new URLSearchParams({ window: asked.window, size: kinds[asked.window].page, from });
  for (const name of ["entity", "resource", "to"]) if (asked[name]) query.set(name, asked[name]);
  const found = { asked, usage: [], gaps: [], more: false };
  for (;;) {
    const page = await ask(`v1/usage?${query}`);
    found.usage.push(...page.usage);
    found.gaps = page.gaps;
    if (!page.next) return found;
    if (found.usage.length >= windowsMost) return { ...found, more: true };
    query.set("after", page.next);
  }
}

async function load() {
  const asked = wanted();
  for (const name of ["entity", "resource", "window", "from", "to"]) byID(name).value = asked[name];
  if (!asked.entity && !asked.resource) {
    connection("live", "Ready");
    show(byID("result"), false);
    return;
  }
  const now = ++asking;
  connection("starting", "Asking");
  try {
    const found = await answerTo(asked);
    if (now !== asking) return;
    showing = found;
    write(byID("mistake"), "");
    show(byID("trouble"), false);
    show(byID("forget"), token !== "");
    connection("live", "Ready");
    open = false;
    render();
  } catch (problem) {
    if (now === asking) failed(problem);
  }
}

function failed(problem) {
  if (!(problem instanceof Problem)) {
    connection("trouble", "This page cannot show what the server answers");
    throw problem;
  }
  show(byID("result"), false);
  if (problem.status === 401 || problem.status === 403) {
    showLock(problem);
    return;
  }
  if (problem.status === 404 && problem.message.startsWith("path")) {
    write(byID("mistake"), "This server does not serve usage.");
  } else if (problem.status === 400) {
    write(byID("mistake"), problem.code === "unsupported"
      ? "The store of this server does not record usage."
      : `This cannot be shown: ${problem.message}.`);
  } else {
    const what = problem.status ? `answers with an error (${problem.status})` : "is not reachable";
    write(byID("trouble"), `The server ${what}. Press “Show” to ask again.`);
    show(byID("trouble"), true);
    connection("trouble", "No answer");
    return;
  }
  connection("live", "Ready");
}

/* Sums. Numbers beyond 2^53 are BigInts. */

const plus = (a, b) => {
  const sum = Number(a) + Number(b);
  return Number.isSafeInteger(sum) && typeof a === "number" && typeof b === "number"
    ? sum : BigInt(a) + BigInt(b);
};

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// seriesOf returns the usage by resource, or by entity if the question names none: the units of
// each limit in all, and by window.
function seriesOf(found) {
  const byName = new Map();
  for (const u of found.usage) {
    const name = found.asked.entity ? u.resource : u.entity;
    const s = byName.get(name) ?? { name, units: Object.create(null), windows: new Map(), count: 0 };
    byName.set(name, s);
    s.count++;
    for (const [limit, n] of Object.entries(u.units)) s.units[limit] = plus(s.units[limit] ?? 0, n);
    s.windows.set(Date.parse(u.start), u.units);
  }
  return [...byName.values()];
}

// unitsOf returns the units of a limit, whose name may be that of a member of every object.
const unitsOf = (units, limit) => (units && Object.hasOwn(units, limit) ? units[limit] : 0);

const limitsOf = (usage) => [...new Set(usage.flatMap((u) => Object.keys(u.units)))].sort(compare);

function render() {
  const { asked, usage, gaps, more } = showing;
  const all = seriesOf(showing);
  const limits = limitsOf(usage);
  const limit = limits.includes(asked.limit) ? asked.limit : limits[0] ?? "";
  showing.limit = limit;
  all.sort((a, b) => compare(b.units[limit] ?? 0, a.units[limit] ?? 0) || compare(a.name, b.name));
  showing.series = all;

  const kind = kinds[asked.window];
  const range = bounds(asked);
  const whose = asked.entity && asked.resource
    ? `${asked.entity} on ${asked.resource}` : asked.entity || asked.resource;
  write(byID("chart-title"), limit ? `${whose}: ${limit} by ${kind.word}` : whose);
  write(byID("range"), `${nameOf(range.from)} up to ${nameOf(range.to)} UTC` +
    (range.usual ? "; earlier usage is left out." : ".") +
    (more ? ` Only the first ${whole.format(usage.length)} windows are shown: choose a shorter time.` : ""));
  byID("gaps").replaceChildren(...gaps.map((g) => element("li", "", gapText(g))));
  show(byID("gaps"), gaps.length > 0);
  byID("limit").replaceChildren(...limits.map((name) => {
    const option = element("option", "", name);
    option.value = name;
    return option;
  }));
  byID("limit").value = limit;
  show(byID("limit").parentElement, limits.length > 1);
  show(byID("nothing"), usage.length === 0);
  for (const id of ["figure", "spot", "sums", "windows"]) show(byID(id), usage.length > 0);
  show(byID("result"), true);
  if (usage.length > 0) {
    draw();
    showSums(all, limits);
    showWindows(limits);
  }
}

function nameOf(ms) {
  const d = new Date(ms);
  return ms % (24 * hourMS) === 0 ? dayText(d) : `${dayText(d)} ${hourText(d)}`;
}

// gapText says the sentence that the commands print.
function gapText(g) {
  const from = g.from ? `from ${timeText(g.from)} to` : "before";
  return `Usage may be missing ${from} ${timeText(g.to)} UTC: ${g.reason}.`;
}

const timeText = (text) => {
  const d = new Date(text);
  return `${dayText(d)} ${hourText(d)}`;
};

/* The chart. */

const svgSpace = byID("usage-chart").namespaceURI;

function drawing(name, attributes, ...children) {
  const e = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// niceTop returns a round number at or above n whose half is round too.
function niceTop(n) {
  if (n <= 1) return 1;
  if (n <= 8) return n + (n % 2);
  for (let unit = 1; ; unit *= 10) {
    for (const m of [10, 12, 16, 20, 24, 30, 40, 50, 60, 80]) if (m * unit >= n) return m * unit;
  }
}

function compact(n) {
  const names = ["", "k", "M", "G", "T", "P", "E"];
  let i = 0;
  for (; n >= 1000 && i < names.length - 1; i++) n /= 1000;
  return `${Math.round(n * 100) / 100}${names[i]}`;
}

// stacks returns the starts of the windows, and the heights of the series in each.
function stacks() {
  const { asked, series, limit } = showing;
  const kind = kinds[asked.window];
  let { from, to } = bounds(asked);
  const known = series.flatMap((s) => [...s.windows.keys()]);
  if ((to - from) / kind.step(0, 1) > columnsMost) {
    from = known.reduce((a, b) => Math.min(a, b));
    to = kind.step(known.reduce((a, b) => Math.max(a, b)), 1);
  }
  const starts = [];
  let at = kind.start(from);
  if (at < from) at = kind.step(at, 1);
  for (; at < to; at = kind.step(at, 1)) starts.push(at);
  const shown = series.length <= seriesMost ? series.map((s) => [s])
    : [...series.slice(0, seriesMost - 1).map((s) => [s]), series.slice(seriesMost - 1)];
  const rows = shown.map((group) => ({
    name: group.length > 1 ? `${group.length} others` : group[0].name,
    sum: group.reduce((n, s) => plus(n, s.units[limit] ?? 0), 0),
    units: starts.map((start) => group.reduce((n, s) => plus(n, unitsOf(s.windows.get(start), limit)), 0)),
  }));
  return { starts, rows };
}

let drawn = null; // the stacks that are drawn

function draw() {
  drawn = stacks();
  const { starts, rows } = drawn;
  byID("keys").replaceChildren(...rows.map((r, i) =>
    element("span", `key key-${i}`, element("span", "id", r.name), ` ${whole.format(r.sum)}`)));
  if (showing.gaps.length > 0) {
    byID("keys").append(element("span", "key key-gap", "usage may be missing"));
  }
  paint();
  const sum = rows.map((r) => `${r.name} ${whole.format(r.sum)}`).join(", ");
  byID("usage-chart").setAttribute("aria-label", `${byID("chart-title").textContent}, ` +
    `${count(starts.length, kinds[showing.asked.window].word, `${kinds[showing.asked.window].word}s`)}: ${sum}`);
}

// paint draws in the pixels that the page has, so that no text is stretched.
function paint() {
  const { starts, rows } = drawn;
  const svg = byID("usage-chart");
  const width = Math.max(svg.getBoundingClientRect().width, 200);
  const tall = width < 560 ? 170 : 240;
  const [left, top, below] = [44, 14, 26];
  const room = width - left - 2;
  svg.setAttribute("viewBox", `0 0 ${width} ${tall + top + below}`);
  svg.setAttribute("height", tall + top + below);
  const sums = starts.map((_, i) => rows.reduce((n, r) => n + Math.max(0, Number(r.units[i])), 0));
  const most = niceTop(sums.reduce((a, b) => Math.max(a, b), 0));
  const x = (i) => left + (room * i) / starts.length;
  const y = (n) => top + tall - (tall * n) / most;
  const parts = [gapPattern()];
  for (const share of [1, .5, 0]) {
    const n = most * share;
    if (n !== Math.floor(n)) continue;
    parts.push(drawing("path", { class: share ? "grid" : "axis-line", d: `M${left} ${y(n)}h${room}` }),
      drawing("text", { class: "scale", x: left - 8, y: y(n) + 4, "text-anchor": "end" }, compact(n)));
  }
  for (const [from, to] of gapColumns(starts)) {
    parts.push(drawing("rect", {
      fill: "url(#gap-pattern)", x: x(from), y: top - 8, width: x(to) - x(from), height: tall + 8,
    }));
  }
  const at = (n) => n.toFixed(1);
  const wide = Math.max((x(1) - x(0)) * (starts.length > room / 3 ? 1 : .88), 1);
  rows.forEach((r, k) => {
    let d = "";
    starts.forEach((_, i) => {
      const under = rows.slice(0, k).reduce((n, q) => n + Math.max(0, Number(q.units[i])), 0);
      const n = Math.max(0, Number(r.units[i]));
      if (n === 0) return;
      d += `M${at(x(i))} ${at(y(under))}V${at(y(under + n))}h${at(wide)}V${at(y(under))}z`;
    });
    if (d) parts.push(drawing("path", { class: `bar-${k}`, d }));
  });
  parts.push(...ticks(starts, x, top + tall, room));
  parts.push(drawing("rect", { id: "over", class: "over", x: left, y: top, width: room, height: tall }));
  svg.replaceChildren(...parts);
  const rect = byID("over");
  rect.addEventListener("pointermove", (event) => {
    const box = rect.getBoundingClientRect();
    const i = Math.floor((starts.length * (event.clientX - box.left)) / box.width);
    spot(Math.min(Math.max(i, 0), starts.length - 1));
  });
  rect.addEventListener("pointerleave", () => spot(-1));
  spot(-1);
}

const gapPattern = () => drawing("defs", {}, drawing("pattern", {
  id: "gap-pattern", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
}, drawing("rect", { class: "gap-back", width: 7, height: 7 }),
drawing("rect", { class: "gap-line", width: 2.5, height: 7 })));

// gapColumns returns the columns that the gaps touch.
function gapColumns(starts) {
  const kind = kinds[showing.asked.window];
  return showing.gaps.map((g) => {
    const [from, to] = [g.from ? Date.parse(g.from) : -Infinity, Date.parse(g.to)];
    return [starts.findIndex((s) => kind.step(s, 1) > from), starts.filter((s) => s < to).length];
  }).filter(([from, to]) => from >= 0 && from < to);
}

// ticks labels the windows for which there is room. It prefers midnights and Januaries.
function ticks(starts, x, y, room) {
  const kind = kinds[showing.asked.window];
  const most = Math.max(Math.floor(room / 64), 1);
  const steps = showing.asked.window === "hourly" ? [1, 2, 3, 6, 12, 24, 48, 168] : [1, 2, 7, 14, 28, 56];
  const each = (showing.asked.window === "monthly" ? [1, 2, 3, 6, 12, 24, 120] : steps)
    .find((n) => starts.length / n <= most) ?? Math.ceil(starts.length / most);
  const first = showing.asked.window === "hourly" && each > 1
    ? Math.max(starts.findIndex((s) => new Date(s).getUTCHours() % Math.min(each, 24) === 0), 0) : 0;
  const out = [];
  for (let i = first; i < starts.length; i += each) {
    const middle = x(i) + (x(1) - x(0)) / 2;
    const anchor = middle < 66 ? "start" : middle > x(starts.length) - 22 ? "end" : "middle";
    const at = anchor === "start" ? x(i) : anchor === "end" ? x(starts.length) : middle;
    out.push(drawing("text", { class: "scale", x: at, y: y + 18, "text-anchor": anchor },
      kind.tick(new Date(starts[i]))));
  }
  return out;
}

// spot names the values of one column, or says how to see them.
function spot(i) {
  const { starts, rows } = drawn;
  if (i < 0) {
    write(byID("spot"), "Point at a column to read it; the tables below have every number.");
    return;
  }
  const kind = kinds[showing.asked.window];
  const parts = rows.filter((r) => r.units[i] !== 0).map((r) => `${r.name} ${whole.format(r.units[i])}`);
  write(byID("spot"), `${kind.name(new Date(starts[i]))}: ${parts.join(" · ") || "nothing"}`);
}

/* The tables. */

function heads(id, names, numbers) {
  byID(id).replaceChildren(...names.map((name, i) => {
    const th = element("th", i >= numbers ? "number" : "", name);
    th.scope = "col";
    th.setAttribute("role", "columnheader");
    return th;
  }));
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);

const unitsCell = (limit, units) => cell(limit, "number", Object.hasOwn(units, limit)
  ? element("span", "", whole.format(units[limit])) : element("span", "zero", "–"));

function showSums(all, limits) {
  const { asked } = showing;
  const first = asked.entity ? "Resource" : "Entity";
  const windows = `${capital(kinds[asked.window].word)}s`;
  heads("sums-heads", [first, windows, ...limits], 1);
  const sum = (name, className, n, units) => row(cell(first, "", element("span", className, name)),
    cell(windows, "number", element("span", "", whole.format(n))), ...limits.map((l) => unitsCell(l, units)));
  const rows = all.map((s) => sum(s.name, "id", s.count, s.units));
  if (all.length > 1) {
    const total = Object.create(null);
    for (const s of all) for (const [l, n] of Object.entries(s.units)) total[l] = plus(total[l] ?? 0, n);
    const tr = sum("All", "", new Set(all.flatMap((s) => [...s.windows.keys()])).size, total);
    tr.className = "total";
    rows.push(tr);
  }
  byID("sums-rows").replaceChildren(...rows);
}

let open = false;

function showWindows(limits) {
  const { asked, usage } = showing;
  const kind = kinds[asked.window];
  const word = capital(kind.word);
  write(byID("windows-title"), `By ${kind.word}, the newest first`);
  heads("windows-heads", [word, "Entity", "Resource", ...limits], 3);
  const newest = usage.toSorted((a, b) => Date.parse(b.start) - Date.parse(a.start));
  const more = byID("windows-more");
  show(more, usage.length > rowsAtFirst);
  write(more, open ? "Show fewer" : `Show all ${whole.format(usage.length)}`);
  more.setAttribute("aria-expanded", String(open));
  byID("windows-rows").replaceChildren(...newest.slice(0, open ? usage.length : rowsAtFirst).map((u) => row(
    cell(word, "", element("span", "", kind.name(new Date(u.start)))),
    cell("Entity", "", element("span", "id", u.entity)),
    cell("Resource", "", element("span", "id", u.resource)),
    ...limits.map((l) => unitsCell(l, u.units)))));
}

/* Events. */

byID("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = { ...wanted() };
  for (const name of ["entity", "resource", "window", "from", "to"]) asked[name] = byID(name).value.trim();
  if (!asked.entity && !asked.resource) {
    write(byID("mistake"), "Name an entity or a resource.");
    byID("entity").focus();
    return;
  }
  if (location.hash === hashOf(asked)) load();
  else location.hash = hashOf(asked);
});
byID("limit").addEventListener("change", () => {
  showing.asked.limit = byID("limit").value;
  history.replaceState(null, "", hashOf(showing.asked));
  render();
});
byID("windows-more").addEventListener("click", () => {
  open = !open;
  showWindows(limitsOf(showing.usage));
});
byID("unlock-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (takeToken()) load();
});
byID("forget").addEventListener("click", forget);
addEventListener("hashchange", load);
let resized = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(() => { if (drawn && !byID("figure").hidden) paint(); });
});
load();
