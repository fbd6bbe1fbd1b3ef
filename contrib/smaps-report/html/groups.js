/* ---- the strip: where all memory of the host is ---- */

const AREAS = [
  { kind: "groups", name: "groups", is: (area) => area.group !== undefined || area.name === "groups" },
  { kind: "outside", name: "processes in no group", is: (area) => area.name === "outside" },
  { kind: "shmem", name: "tmpfs", is: (area) => area.name === "tmpfs" },
  { kind: "cache", name: "cache", is: (area) => /^(page_cache|swap_cache|buffers|slab_reclaimable)$/.test(area.name) },
  { kind: "free", name: "free", is: (area) => area.name === "free" },
  { kind: "kernel", name: "kernel and the rest", is: () => true },
];

/* Without the host's own numbers: the groups, what is available, the rest. */
function guessAreas() {
  const used = groups.reduce((sum, group) => sum + (group.pss || 0), 0);
  const free = Math.min(data.mem_available, Math.max(data.mem_total - used, 0));
  return [{ name: "groups", used }, { name: "free", title: "available", used: free },
    { name: "rest", title: "kernel, caches and processes in no group", used: Math.max(data.mem_total - used - free, 0) }];
}

/* In a capture all groups are one area: its own group is shown by itself. */
function partAreas() {
  const areas = (data.areas || guessAreas()).filter((area) => area.used > 0);
  const scope = groups.find((group) => group.name === data.scope);
  const all = areas.find((area) => area.name === "groups" && area.group === undefined);
  if (!scope || !all || !(scope.pss < all.used)) return areas;
  return [{ name: "groups", group: scope.name, used: scope.pss, error: scope.pss_error },
    { ...all, title: "other groups", used: all.used - scope.pss }, ...areas.filter((area) => area !== all)];
}

function titleOf(area) {
  const name = area.group ?? area.title ?? area.name;
  return name + "\n" + exact(area.used) + (area.error > 0 ? " ± " + bytes(area.error) : "")
    + "\n" + percent(area.used, data.mem_total) + " of the memory";
}

function drawStrip() {
  const order = ["groups", "outside", "shmem", "kernel", "cache", "free"];
  const areas = partAreas().map((area) => ({ ...area, of: AREAS.find((one) => one.is(area)) }));
  const total = areas.reduce((sum, area) => sum + area.used, 0);
  if (!data.mem_total || total === 0) return;
  areas.sort((a, b) => order.indexOf(a.of.kind) - order.indexOf(b.of.kind) || b.used - a.used);
  byId("memory").hidden = false;
  byId("memory").firstElementChild.textContent = "Memory of the host: " + bytes(data.mem_total);
  byId("strip").append(...areas.map((area) => {
    const share = area.used / total, name = area.group ?? area.title ?? area.name;
    const part = make("div", { class: "part " + area.of.kind, title: titleOf(area), style: { width: 100 * share + "%" } },
      share > 0.05 ? make("span", {}, make("bdi", {}, name), " ", make("b", {}, bytes(area.used))) : null);
    if (area.group === undefined) return part;
    part.addEventListener("click", () => openGroup(area.group));
    part.classList.add("link");
    return part;
  }));
  byId("areas").append(...order.map((kind) => {
    const own = areas.filter((area) => area.of.kind === kind);
    const sum = own.reduce((all, area) => all + area.used, 0);
    if (sum === 0) return null;
    const name = own.length === 1 && own[0].title ? own[0].title : own[0].of.name;
    const item = swatch(kind, name + " ", make("b", {}, bytes(sum)), " " + percent(sum, data.mem_total));
    if (kind !== "groups") item.title = own.map((area) => titleOf(area).replaceAll("\n", ", ")).join("\n");
    return item;
  }).filter(Boolean));
}

/* ---- the bars: groups side by side ---- */

const BARS = 20;

/* As long as the largest, with its swap, and what it was. An error may be many
 * times as large: it ends at the scale. */
function scaleOf(rows) {
  return Math.max(1, ...rows.map((one) => Math.max((one.pss || 0) + (one.swap || 0), one.old_pss || 0)));
}

const hasErrorBar = (one, scale) => one.pss_error > scale / 200;
const isCut = (one, scale) => hasErrorBar(one, scale) && one.pss + one.pss_error > scale;

function errorBar(one, scale, width) {
  const low = Math.max(one.pss - one.pss_error, 0), high = Math.min(one.pss + one.pss_error, scale);
  return make("i", { class: isCut(one, scale) ? "error cut" : "error",
    title: "PSS " + bytes(one.pss) + " ± " + bytes(one.pss_error),
    style: { left: width(low), width: width(high - low) } });
}

function bar(one, scale) {
  const width = (size) => (100 * size / scale).toFixed(3) + "%";
  const parts = [];
  let at = 0;
  const add = (size, kind, title) => {
    if (size > 0) parts.push(make("i", { class: "piece " + kind, title, style: { left: width(at), width: width(size) } }));
    at += size;
  };
  for (const piece of pieces(one))
    add(piece.size, piece.kind + (piece.isShared ? " hatched" : ""), piece.name + " " + exact(piece.size));
  const end = at;
  add(one.swap, "swap", "swap " + exact(one.swap));
  if (one.at_least)
    parts.push(make("i", { class: "more", title: "at least this: a part is unknown", style: { left: width(end) } }));
  if (hasErrorBar(one, scale)) parts.push(errorBar(one, scale, width));
  if (one.old_pss !== undefined)
    parts.push(make("i", { class: "old", title: "before: " + exact(one.old_pss), style: { left: width(one.old_pss) } }));
  return make("div", { class: "bar", role: "img", "aria-label": parts.map((part) => part.title).join(", ") }, ...parts);
}

function changeOf(one) {
  if (!data.old) return "";
  if (one.is_new) return "new";
  return one.pss === undefined || one.old_pss === undefined ? UNKNOWN : signed(one.pss - one.old_pss);
}

const directionOf = (change) => change > 0 ? "grew" : change < 0 ? "shrank" : "";

const limitOf = (group) => bytes(group.cgroup_limit) + ", "
  + percent(group.cgroup_memory, group.cgroup_limit) + " in use";

function groupFacts(group) {
  const limit = group.cgroup_limit === undefined ? null : limitOf(group);
  return factList([
    ["USS", bytes(group.uss)], ["freed if it ended", amount(group.freed, group.freed_error)], ["RSS", bytes(group.rss)], ["swap", bytes(group.swap)],
    ["processes", number(group.processes)], ["threads", number(group.threads)],
    ["unreadable", group.unreadable ? plural(group.unreadable, "process", "processes") : null],
    ["error of PSS", group.causes ? "± " + group.causes : null],
    ["read now", group.coverage === undefined ? null : Math.round(group.coverage) + " % of PSS"],
    ["oldest reading", group.age === undefined ? null : duration(group.age) + " before"],
    ["oldest member", duration(group.uptime)],
    ["growth", group.growth ? bytes(group.growth) + "/s" : null],
    ["grows since", group.grows_since === undefined ? null : time(group.grows_since)],
    ["memory is full in", group.until_limit === undefined ? null
      : duration(group.until_limit) + ", at " + time(data.time + group.until_limit)],
    ["control group", group.cgroup], ["its memory", bytes(group.cgroup_memory)], ["its limit", limit],
    ["killed in the last hour", group.oom_kill ? plural(group.oom_kill, "process", "processes") : null],
  ]);
}

function groupRow(group, scale) {
  const change = changeOf(group);
  const details = make("div", { class: "details", hidden: "" });
  const name = make("button", { type: "button", class: "group-name", "aria-expanded": "false", title: group.name }, group.name);
  name.addEventListener("click", () => {
    if (!details.hasChildNodes())
      details.append(quadrantTable(group), groupFacts(group), make("button", { type: "button", class: "screen",
        on: { click: () => openGroup(group.name) } }, "Show in the map"));
    details.hidden = !details.hidden;
    name.setAttribute("aria-expanded", String(!details.hidden));
  });
  return make("div", { class: "group" }, name,
    make("span", { class: "pss", title: group.pss === undefined ? "RSS " + bytes(group.rss) : exact(group.pss) },
      make("span", {}, amount(group.pss, null, group.at_least)), " ", make("span", {}, doubt(group.pss, group.pss_error))),
    bar(group, scale),
    make("span", { class: "change " + directionOf(group.pss - group.old_pss) }, change),
    make("span", { class: "muted count" }, plural(group.processes, "process", "processes")), details);
}

function drawGroups() {
  const sorted = [...groups].sort((a, b) => (b.pss ?? -1) - (a.pss ?? -1));
  const scale = scaleOf(sorted), element = byId("bars");
  const more = make("button", { type: "button", class: "screen" }, "Show all " + plural(sorted.length, "group"));
  element.classList.toggle("compared", Boolean(data.old));
  element.append(...sorted.slice(0, BARS).map((group) => groupRow(group, scale)));
  more.addEventListener("click", () => more.replaceWith(...sorted.slice(BARS).map((group) => groupRow(group, scale))));
  if (sorted.length > BARS) element.append(more);
  const first = sorted.findIndex((group) => group.name === data.scope);
  element.querySelectorAll(".group-name")[Math.max(first, 0)]?.click();
  byId("kinds").append(swatch("anon", "anonymous"), swatch("file", "files"), swatch("shmem", "shared memory"),
    swatch("anon hatched", "hatched: shared with others"), swatch("swap", "swap, not in PSS"),
    swatch("error", "± error"), ...(sorted.some((group) => isCut(group, scale)) ? [swatch("error cut", "± beyond the scale")] : []),
    ...(data.old ? [swatch("old", "before")] : []));
}

/* ---- what has changed since the older snapshot ---- */

const CHANGES = 12;

const WORDS = { listed: "not listed before", unlisted: "not listed now" };

function changeTable(title, rows, hasPids) {
  const changed = (row) => row.old === null || row.new === null ? null : row.new - row.old;
  const what = (row) => row.how === "stayed" ? directionOf(changed(row)) || UNKNOWN : WORDS[row.how] ?? row.how;
  /* As in the data: the largest change first. */
  const columns = [
    { title: "Change", class: "number", value: changed, text: (row) => signed(changed(row)), mark: (row) => directionOf(changed(row)) },
    { title: "Name", class: "name long", isText: true, value: (row) => row.name ?? "-" },
    { title: "What", isText: true, value: what },
    { title: "Before", class: "number", value: (row) => row.old, text: (row) => row.how === "new" ? "" : bytes(row.old) },
    { title: "Now", class: "number", value: (row) => row.new, text: (row) => row.how === "gone" ? "" : bytes(row.new) },
  ];
  if (hasPids)
    columns.push({ title: "PID", class: "number", isText: true, value: (row) => row.new_pid ?? row.old_pid,
      text: (row) => row.how === "restarted" ? row.old_pid + " › " + row.new_pid : row.new_pid ?? row.old_pid },
    { title: "Group", class: "name", isText: true, value: (row) => row.group ?? "" });
  return makeTable({ title, columns, rows, limit: CHANGES, hasSearch: rows.length > CHANGES }).element;
}

function drawChanges() {
  const { old } = data;
  if (!old) return;
  byId("changes").hidden = false;
  const age = data.time - old.time;
  byId("since").textContent = "since " + time(old.time)
    + (Number.isFinite(age) ? ", " + duration(Math.abs(age)) + (age < 0 ? " after" : " before") : "") + (old.host === data.host ? "" : ", on " + (old.host ?? "another host"));
  for (const [key, title] of [["groups", "Changes of groups"], ["processes", "Changes of processes"],
    ["mappings", "Changes of mappings"]]) {
    const rows = old[key] && objects(old.change_columns, old[key]);
    if (rows && rows.length) byId("tables").append(changeTable(title, rows, key === "processes"));
    else if (rows) byId("tables").append(make("p", { class: "muted" }, title + ": none."));
  }
}
