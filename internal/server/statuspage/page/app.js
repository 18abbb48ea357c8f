// The status page.

import {
  Problem, ask, byID, cell, connection, count, element, forget, row, show, showLock, sync, takeToken, token,
  whole, write,
} from "./common.js";

const everyMS = 1000;
const pauseMostMS = 30000; // between attempts while the server does not answer
const spokenEveryMS = 20000; // how often figures are read out
const rowsAtFirst = 8;
const rowsMore = 100;

/* Numbers and times. */

const fraction = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

// minus works on whole numbers beyond 2^53 too, which parse leaves as BigInt.
const minus = (a, b) => (typeof a === typeof b ? a - b : BigInt(a) - BigInt(b));

function time(ms, now) {
  const day = date.format(ms);
  return day === date.format(now) ? clock.format(ms) : `${day}, ${clock.format(ms)}`;
}

function percent(part, all) {
  const share = (100 * Number(part)) / Number(all);
  if (share > 0 && share < 0.01) return "below 0.01%";
  if (share > 99 && share < 100) return `${Math.floor(share * 100) / 100}%`; // never rounded to all
  return `${fraction.format(share)}%`;
}

const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

// span writes a duration with its two largest units.
function span(ms) {
  if (ms < 1000) return `${Math.max(0, Math.ceil(ms))} ms`;
  let rest = Math.ceil(ms / 1000);
  if (rest > 36500 * 86400) return "more than a century";
  const parts = [];
  for (const [name, seconds] of units) {
    const n = Math.floor(rest / seconds);
    rest -= n * seconds;
    if (n > 0) parts.push(`${whole.format(n)} ${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

const hashOf = (entity, resource) =>
  "#" + new URLSearchParams(resource ? { entity, resource } : { entity });

function entityLink(entity, resource) {
  const a = element("a", "id", entity);
  a.href = hashOf(entity, resource);
  return a;
}

const askAbout = (what, entity, resource) => {
  const query = new URLSearchParams({ entity });
  if (resource) query.set("resource", resource);
  return ask(`v1/${what}?${query}`);
};

/* The state of the connection, and when to ask next. */

let failures = 0;
let failingSince = 0;
let lastAnswer = 0;
let locked = false;
let timer = 0;
let asking = false;

async function tick() {
  clearTimeout(timer);
  if (asking || locked || document.hidden) return;
  asking = true;
  try {
    const [activity] = await Promise.all([askActivity(), lookUp()]);
    showActivity(activity);
    answered();
  } catch (problem) {
    failed(problem);
  } finally {
    asking = false;
    const pause = failures ? Math.min(everyMS * 2 ** (failures - 1), pauseMostMS) : everyMS;
    if (!locked && !document.hidden) timer = setTimeout(tick, pause);
  }
}

function answered() {
  if (!lastAnswer && location.hash) byID("lookup").scrollIntoView(); // now that the page has its height
  failures = 0;
  lastAnswer = Date.now();
  connection("live", "Live");
  show(byID("trouble"), false);
  byID("content").classList.remove("stale");
  show(byID("forget"), token !== "");
}

function failed(problem) {
  if (!(problem instanceof Problem)) {
    connection("trouble", "This page cannot show what the server answers");
    throw problem;
  }
  if (problem.status === 401 || problem.status === 403) {
    lock(problem);
    return;
  }
  if (failures++ === 0) failingSince = Date.now();
  const now = Date.now();
  const since = time(failingSince, now);
  const what = problem.status
    ? `The server answers with an error (${problem.status}) since ${since}.`
    : `The server is not reachable since ${since}.`;
  const shown = lastAnswer ? ` What is shown is from ${time(lastAnswer, now)}.` : "";
  connection("trouble", problem.status ? `Failing since ${since}` : `Not reachable since ${since}`);
  write(byID("trouble"), `${what}${shown} This page keeps trying.`);
  show(byID("trouble"), true);
  byID("content").classList.add("stale");
}

function lock(problem) {
  locked = true;
  failures = 0;
  showLock(problem);
}

function unlock(event) {
  event.preventDefault();
  if (!takeToken()) return;
  locked = false;
  tick();
}

/* Overview. */

async function askActivity() {
  try {
    return await ask("v1/activity");
  } catch (problem) {
    if (problem.status === 404) return null; // the server keeps none
    throw problem;
  }
}

let spokenAt = 0;

function showActivity(a) {
  show(byID("no-activity"), a === null);
  for (const id of ["figures", "pace", "denials", "limits"]) show(byID(id), a !== null);
  if (a === null) {
    for (const id of ["parties", "high-share"]) show(byID(id), false); // the figures show them where needed
    return;
  }
  const all = a.admitted + a.denied;
  write(byID("since"), `since ${time(a.since_unix_ms, a.now_unix_ms)}` +
    (a.now_unix_ms - a.since_unix_ms >= 1000 ? `, for ${span(a.now_unix_ms - a.since_unix_ms)}` : ""));
  write(byID("admitted"), whole.format(a.admitted));
  write(byID("admitted-note"), [
    a.degraded ? `${whole.format(a.degraded)} without the store` : "",
    a.replayed ? count(a.replayed, "call repeated", "calls repeated") : "",
  ].filter(Boolean).join(" · "));
  write(byID("denied"), whole.format(a.denied));
  write(byID("denied-note"), all ? `${percent(a.denied, all)} of reservations` : "");
  showErrors(a.errors);
  showSeconds(a);
  showLists(a);
  suggest(a);
}

function showErrors(errors) {
  const sum = errors.reduce((n, e) => n + e.count, 0);
  write(byID("errors"), whole.format(sum));
  const most = errors.toSorted((x, y) => y.count - x.count);
  const text = most.slice(0, 3).map((e) => `${e.code} ${whole.format(e.count)}`).join(" · ");
  write(byID("errors-note"), most.length > 3 ? `${text} · …` : text);
}

// showSeconds leaves out the last second, which is not over yet.
function showSeconds(a) {
  const admitted = a.seconds.admitted.slice(0, -1);
  const denied = a.seconds.denied.slice(0, -1);
  const sums = admitted.map((n, i) => n + denied[i]);
  const peak = Math.max(...sums);
  const bars = (from, height) => sums.map((_, i) => (height[i] === 0 ? "" :
    `M${i + 0.1} ${100 - (100 * from[i]) / peak}v${(-100 * height[i]) / peak}h.8v${(100 * height[i]) / peak}z`
  )).join("");
  byID("chart-admitted").setAttribute("d", bars(sums.map(() => 0), admitted));
  byID("chart-denied").setAttribute("d", bars(admitted, denied));
  write(byID("peak"), peak ? `highest ${whole.format(peak)} a second` : "none in the last two minutes");

  const total = (list) => list.reduce((n, x) => n + x, 0);
  showShare(a, total(denied), total(sums));
  const lately = total(sums.slice(-10)) / 10;
  const refused = total(denied.slice(-10)) / 10;
  const rate = (n) => (n < 10 ? fraction.format(n) : whole.format(Math.round(n)));
  write(byID("rate"), `${rate(lately)}/s`);
  write(byID("rate-note"), `${rate(refused)}/s denied, over 10 s`);
  const sum = `${count(total(admitted), "reservation", "reservations")} admitted and ` +
    `${whole.format(total(denied))} denied in the last two minutes`;
  byID("chart").setAttribute("aria-label", peak ? `${sum}, at most ${peak} in a second` : sum);
  if (Date.now() - spokenAt >= spokenEveryMS) {
    spokenAt = Date.now();
    write(byID("spoken"), `${sum}.`);
  }
}

/* Lists that show their first rows until asked for more. */

const shown = { denials: rowsAtFirst, parties: rowsAtFirst, limits: rowsAtFirst };

function listOf(id, items, sync) {
  show(byID(`${id}-empty`), items.length === 0);
  show(byID(`${id}-table`), items.length > 0);
  const more = byID(`${id}-more`);
  show(more, items.length > rowsAtFirst);
  const next = shown[id] >= items.length ? rowsAtFirst : shown[id] + rowsMore;
  more.dataset.next = next;
  write(more, next === rowsAtFirst ? "Show fewer"
    : `Show ${next < items.length ? `${next} of` : "all"} ${items.length}`);
  more.setAttribute("aria-expanded", String(shown[id] > rowsAtFirst));
  sync(items.slice(0, shown[id]));
}

function toggle(id) {
  shown[id] = Number(byID(`${id}-more`).dataset.next);
  if (latest) showLists(latest);
}

let latest = null;

function showLists(a) {
  showLimits(a.limits);
  showDenials(a);
  showParties(a);
}

const limitColumns = [
  ["Admitted", "admitted", ""],
  ["Denied", "denied", "alarm"],
  ["Exceeded in shadow", "shadow_exceeded", ""],
  ["Units reserved", "units_reserved", ""],
];

function showLimits(limits) {
  show(byID("limits-note"), limits.length > 0);
  const most = limits.toSorted((x, y) => Number(y.denied) - Number(x.denied)); // then by name
  listOf("limits", most, (rows) => sync(byID("limits-rows"), rows,
    (l) => `${l.limit} ${l.kind}`,
    (l) => row(
      cell("Limit", "", element("span", "",
        element("span", "id", l.limit || "others"), " ", tag(l.kind || "no room for their names"))),
      ...limitColumns.map(([label]) => cell(label, "number", element("span")))),
    (tr, l) => limitColumns.forEach(([, name, alarm], i) => {
      const span = tr.children[i + 1].firstChild;
      const returns = l.kind === "concurrency" && name === "units_reserved"; // a sum of slots says nothing
      write(span, returns ? "–" : whole.format(l[name]));
      span.className = Number(l[name]) === 0 ? "zero" : alarm;
    })));
}

const tag = (text, className = "") => element("span", `tag ${className}`.trim(), text);

function showDenials(a) {
  latest = a;
  listOf("denials", groupsOf(a.denials), (rows) => sync(byID("denials-rows"), rows,
    (g) => g.key,
    ({ newest: d }) => row(
      cell("When", "", element("span", "", element("time"), element("span", "note times"))),
      cell("Who", "", whoAsked(d)),
      cell("Denied by", "", deniedBy(d)),
      cell("Would fit", "", element("span"))),
    (tr, g) => fillDenial(tr, g, a.now_unix_ms)));
}

const chargesOf = (d) => d.charges ?? [{ entity: d.entity, resource: d.resource }];

// groupsOf puts denials together that name the same who asked, limits, and whose limits. The groups
// are in the order of their newest denials, as the denials are.
function groupsOf(denials) {
  const groups = new Map();
  for (const d of denials) {
    const key = JSON.stringify([
      chargesOf(d).map((c) => [c.entity, c.resource]),
      d.exceeded.map((x) => [x.entity, x.resource, x.limit, x.kind]), d.more ?? 0, d.contended ?? false,
    ], (_, v) => (typeof v === "bigint" ? String(v) : v));
    const group = groups.get(key);
    if (group) Object.assign(group, { oldest: d, count: group.count + 1 });
    else groups.set(key, { key, newest: d, oldest: d, count: 1 });
  }
  return [...groups.values()];
}

// fillDenial writes what differs between the denials of a group: those of the newest.
function fillDenial(tr, { newest: d, oldest, count: n }, now) {
  const [at, times] = tr.children[0].firstChild.children;
  write(at, time(d.at_unix_ms, now));
  at.dateTime = at.title = new Date(d.at_unix_ms).toISOString();
  write(times, n > 1 ? ` ${whole.format(n)} times since ${time(oldest.at_unix_ms, now)}` : "");
  const items = tr.children[2].firstChild.children;
  d.exceeded.forEach((x, i) => write(items[i].lastElementChild, `asked ${whole.format(x.requested)} · ${inUse(x)}`));
  write(tr.children[3].firstChild, wouldFit(d, now));
}

// whoAsked names every charge, with a link to what its entity has left.
function whoAsked(d) {
  const names = chargesOf(d).map(({ entity, resource }) => [
    entity ? entityLink(entity, resource) : "unknown", " ",
    resource ? element("span", "note id", resource) : null,
  ]);
  if (names.length === 1) return element("span", "", ...names[0]);
  return element("ul", "by", ...names.map((name) => element("li", "", ...name)));
}

// deniedBy names the limits that denied, and whose they are unless they are those of the one who asked.
function deniedBy(d) {
  const charges = chargesOf(d);
  const own = (x) => charges.length === 1 && x.entity === charges[0].entity && x.resource === charges[0].resource;
  const items = d.exceeded.map((x) => element("li", "",
    element("span", "id", x.limit), " ",
    own(x) ? null : "of ",
    own(x) ? null : entityLink(x.entity, x.resource), " ",
    element("span", "note")));
  if (d.more) items.push(element("li", "note", `and ${whole.format(d.more)} more`));
  if (d.contended) items.push(element("li", "", "other writers, which were faster"));
  return element("ul", "by", ...items);
}

// The share of denials in the last two minutes above which the page says so, and the number of
// reservations from which on it looks at the share.
const highShare = 1 / 5;
const enoughToShare = 10;

// showShare says if many of the reservations were denied, and to whom that happens most.
function showShare(a, denied, all) {
  const high = all >= enoughToShare && denied > all * highShare;
  byID("denied").classList.toggle("alarm", high);
  show(byID("high-share"), high);
  if (!high) return;
  const parts = [`${percent(denied, all)} of the reservations of the last two minutes were denied: ` +
    `${whole.format(denied)} of ${whole.format(all)}.`];
  const [most] = groupsOf(a.denials).toSorted((x, y) => y.count - x.count);
  if (most) {
    const id = (name) => element("span", "id", name);
    parts.push(" Most often lately: ");
    chargesOf(most.newest).forEach((c, i) => parts.push(i ? ", " : "", id(c.entity), " on ", id(c.resource)));
    most.newest.exceeded.forEach((x, i) => parts.push(i ? ", " : ", by ", id(x.limit), " of ", id(x.entity)));
    parts.push(` (${whole.format(most.count)} of the last ${whole.format(a.denials.length)}).`);
  }
  const text = parts.map((part) => part.textContent ?? part).join("");
  if (byID("high-share").textContent !== text) byID("high-share").replaceChildren(...parts);
}

// showParties lists the entities that were seen lately or denied most, those with what is being typed
// in their names.
function showParties(a) {
  const parties = new Map();
  const party = (entity) => {
    if (!parties.has(entity)) parties.set(entity, { entity, last: 0, asked: 0, denied: 0, owned: 0 });
    return parties.get(entity);
  };
  for (const e of a.entities) Object.assign(party(e.entity), { last: e.last_unix_ms, asked: e.asked });
  for (const d of a.denied_askers ?? []) party(d.entity).denied = d.denied;
  for (const d of a.denied_owners ?? []) party(d.entity).owned = d.denied;
  show(byID("parties"), parties.size > 0);
  const typed = byID("entity").value.trim();
  const part = typed === wanted().entity ? "" : typed.toLowerCase();
  const rank = (p) => (p.entity ? Number(p.denied) + Number(p.owned) : -1); // the others come last
  const most = [...parties.values()].filter((p) => p.entity.toLowerCase().includes(part))
    .toSorted((x, y) => rank(y) - rank(x)); // then by who was seen last
  listOf("parties", most, (rows) => sync(byID("parties-rows"), rows,
    (p) => p.entity,
    (p) => row(
      cell("Entity", "", p.entity ? entityLink(p.entity, "") : element("span", "", "all others")),
      cell("Last seen", "", element("span")),
      ...["Asked", "Was denied", "Its limits denied"].map((label) => cell(label, "number", element("span")))),
    (tr, p) => {
      write(tr.children[1].firstChild, p.last ? time(p.last, a.now_unix_ms) : "–");
      [p.asked, p.denied, p.owned].forEach((n, i) => {
        const span = tr.children[i + 2].firstChild;
        write(span, whole.format(n));
        span.className = Number(n) === 0 ? "zero" : i > 0 ? "alarm" : "";
      });
    }));
}

function wouldFit(d, now) {
  const at = d.at_unix_ms + Number(d.retry_after_ms);
  const least = d.retry_after_at_least ? "at least " : "";
  if (at > now) return `in ${least}${span(at - now)}`;
  return `${least}${span(Number(d.retry_after_ms))} later`;
}

function suggest(a) {
  const fill = (id, names) => sync(byID(id), names, (n) => n, (n) => {
    const option = element("option");
    option.value = n;
    return option;
  }, () => {});
  fill("entities", a.entities.map((e) => e.entity));
  fill("resources", [...new Set(a.denials.map((d) => d.resource).filter(Boolean))].sort());
}

/* Looking up. */

const levels = {
  entity: "the entity’s own",
  entity_default: "the entity’s, for every resource",
  resource: "the resource’s",
  system: "the system’s",
  limiter: "the server’s options",
  request: "brought by the request",
};
const levelOf = (level) => levels[level] ?? level;

const wanted = () => {
  const hash = new URLSearchParams(location.hash.slice(1));
  return { entity: hash.get("entity") ?? "", resource: hash.get("resource") ?? "" };
};

let refused = ""; // the address that was no good, which will not change by asking again

// lookUp asks what the address names, and drops the answer if it names something else meanwhile.
async function lookUp() {
  const { entity, resource } = wanted();
  if (!entity || refused === location.hash) return;
  const stays = () => wanted().entity === entity && wanted().resource === resource;
  let subjects, explanation;
  try {
    [subjects, explanation] = await askSubjects(entity, resource);
  } catch (problem) {
    if (![400, 404, 422].includes(problem.status)) throw problem;
    if (stays()) showMistake(problem);
    return;
  }
  if (stays()) showSubjects(subjects, explanation);
}

// askSubjects returns the limits of the entity, and of those that are charged with it. A status has
// the limits of all.
async function askSubjects(entity, resource) {
  if (!resource) {
    const { limits } = await askAbout("status", entity, "");
    const of = Map.groupBy(limits, (l) => l.resource);
    return [[...of].map(([name, list]) => ({ entity, resource: name, limits: list, all: true })), null];
  }
  const [explanation, { limits }] = await Promise.all(
    ["explain", "status"].map((what) => askAbout(what, entity, resource)));
  const chain = [];
  for (let e = explanation; e && chain.length < 10; e = e.parent) chain.push(e.entity);
  return [chain.map((name, i) => (
    { entity: name, resource, limits: limits.filter((l) => l.entity === name), parent: i > 0 }
  )), explanation];
}

function showMistake(problem) {
  if (problem.status === 400) refused = location.hash;
  write(byID("lookup-message"), `This cannot be looked up: ${problem.message}.`);
  show(byID("lookup-result"), false);
}

function showSubjects(subjects, explanation) {
  const found = subjects.some((s) => s.limits.length > 0);
  const { entity, resource } = wanted();
  write(byID("lookup-message"), found ? "" : resource
    ? `Nothing is configured for ${entity} on ${resource}.`
    : `${entity} has nothing in use. Name a resource to see which limits apply there.`);
  show(byID("lookup-result"), found || explanation !== null);
  sync(byID("subjects"), subjects, (s) => `${s.entity} ${s.resource} ${s.all}`, subject, fillSubject);
  const explain = byID("explain");
  show(explain, explanation !== null);
  const text = JSON.stringify(explanation, (_, v) => (typeof v === "bigint" ? String(v) : v));
  if (explain.dataset.shown !== text) {
    explain.dataset.shown = text;
    byID("explanations").replaceChildren(...explanations(explanation));
  }
}

function subject(s) {
  const title = element("h3", "id", s.all ? s.resource : s.entity);
  const beside = element("p", "note", element("span"));
  if (s.all) {
    const a = element("a", "", "why");
    a.href = hashOf(s.entity, s.resource);
    a.setAttribute("aria-label", `Which limits apply to ${s.entity} on ${s.resource}, and why`);
    beside.append(" · ", a);
  } else if (s.parent) {
    beside.append(" · the parent, charged too");
  }
  return element("section", "subject", element("header", "", title, beside), element("ul", ""));
}

// fillSubject names the level once: the first one that has any limits wins whole.
function fillSubject(section, s) {
  const [header, list] = section.children;
  const own = s.limits.filter((l) => l.entity === s.entity);
  const from = [...new Set(own.map((l) => levelOf(l.level)))].join(", ");
  write(header.lastElementChild.firstChild, from ? `limits: ${from}` : "no limits");
  sync(list, s.limits, (l) => `${l.limit} ${l.kind} ${l.entity}`, (l) => limit(l, s.entity), fillLimit);
}

function limit(l, entity) {
  const fill = element("i");
  const bar = element("div", "bar", fill);
  bar.setAttribute("role", "meter");
  bar.setAttribute("aria-label", l.limit);
  bar.setAttribute("aria-valuemin", "0");
  return element("li", "limit",
    element("p", "name", element("span", "id", l.limit), " ",
      l.entity === entity ? null : element("span", "", "of ", entityLink(l.entity, l.resource)), " ", tag(l.kind), " ",
      l.shadow ? tag("shadow, never denies", "shadow") : null),
    element("p", "amount"), bar);
}

// fillLimit draws how much of the capacity is in use, as the report of a replay does.
function fillLimit(li, l) {
  const [, text, bar] = li.children;
  const used = usedOf(l);
  const full = used >= l.capacity;
  const share = (100 * Number(used)) / Number(l.capacity);
  write(text, inUse(l));
  bar.firstChild.className = full ? "bad" : Number(l.available) <= Number(l.capacity) / 5 ? "low" : "good";
  bar.firstChild.style.width = full ? "100%" : used > 0 ? `${Math.max(0.8, share)}%` : "0%";
  bar.setAttribute("aria-valuemax", String(l.capacity));
  bar.setAttribute("aria-valuenow", String(full ? l.capacity : used));
  bar.setAttribute("aria-valuetext", inUse(l));
}

const usedOf = (l) => (l.available < l.capacity ? minus(l.capacity, l.available) : 0);

function inUse(l) {
  const used = usedOf(l);
  const over = used > l.capacity ? (l.kind === "bucket" ? ", in debt" : ", over capacity") : "";
  const slots = l.kind === "concurrency" ? " slots" : "";
  return `${whole.format(used)} of ${whole.format(l.capacity)}${slots} in use${over}`;
}

function explanations(explanation) {
  const out = [];
  let e = explanation;
  for (let first = true; e; e = e.parent, first = false) {
    const title = element("h4", "", element("span", "id", e.entity), first ? "" : ", charged too as its parent");
    const hidden = (e.hidden ?? []).map((h) => levelItem(h.level, h.limits, false));
    const list = e.level
      ? element("ol", "levels", levelItem(e.level, e.limits, true), ...hidden)
      : element("p", "empty", "Nothing is configured.");
    out.push(element("div", "explained", title, list));
  }
  if (explanation?.on_unavailable) {
    const from = sources[explanation.on_unavailable_from] ?? explanation.on_unavailable_from;
    out.push(element("div", "explained", element("p", "note",
      "If the store does not answer: ", element("span", "id", explanation.on_unavailable), `, ${from}.`)));
  }
  return out;
}

// sources puts the sources of on_unavailable into words.
const sources = {
  limiter: "by the server’s options", system: "by the system’s configuration", default: "by default",
};

function levelItem(level, limits, wins) {
  const items = Object.entries(limits).map(([name, l]) => element("li", "",
    element("span", "id", name), `: ${rule(l)}`, l.enforce === false ? ", shadow" : ""));
  return element("li", wins ? "wins" : "over",
    element("p", "name", levelOf(level), " ", tag(wins ? "applies" : "hidden", wins ? "wins" : "")),
    element("ul", "", ...items));
}

const periods = { 1: "second", 60: "minute", 3600: "hour", 86400: "day" };

// rule puts a limit's definition into words.
function rule(l) {
  const capacity = whole.format(l.capacity);
  switch (l.kind) {
    case "window": return `${capacity} in any ${periods[l.window] ?? span(l.window * 1000)}`;
    case "concurrency": return `${capacity} at once, each up to ${span(l.timeout * 1000)}`;
    case "budget": return `${capacity} each ${l.every}, ${l.zone ?? "UTC"}`;
  }
  const seconds = l.refill_period ?? 60;
  const amount = whole.format(l.refill_amount ?? l.capacity);
  const rate = `${amount} per ${periods[seconds] ?? span(seconds * 1000)}`;
  return amount === capacity ? rate : `${rate}, up to ${capacity}`;
}

// fromHash begins a look-up. Who came by a link finds the answer in view and in focus.
function fromHash() {
  const { entity, resource } = wanted();
  byID("entity").value = entity;
  byID("resource").value = resource;
  show(byID("clear"), entity !== "");
  show(byID("lookup-result"), false);
  write(byID("lookup-message"), "");
  refused = "";
  if (!entity) return;
  const { top } = byID("lookup").getBoundingClientRect();
  if (top < 0 || top > innerHeight / 3) byID("lookup").scrollIntoView();
  if (document.activeElement?.hash === location.hash) byID("lookup-title").focus({ preventScroll: true });
  if (locked) return;
  lookUp().catch(failed);
}

function submitLookup(event) {
  event.preventDefault();
  const hash = hashOf(byID("entity").value.trim(), byID("resource").value.trim());
  if (location.hash === hash) fromHash();
  else location.hash = hash;
}

byID("lookup-form").addEventListener("submit", submitLookup);
byID("entity").addEventListener("input", () => latest && showParties(latest));
byID("clear").addEventListener("click", () => {
  location.hash = "";
  byID("entity").focus();
});
byID("unlock-form").addEventListener("submit", unlock);
byID("forget").addEventListener("click", forget);
for (const id of Object.keys(shown)) byID(`${id}-more`).addEventListener("click", () => toggle(id));
addEventListener("hashchange", fromHash);
addEventListener("online", tick);
document.addEventListener("visibilitychange", () => {
  if (!locked && document.hidden) connection("paused", "Paused");
  tick();
});
fromHash();
tick();
