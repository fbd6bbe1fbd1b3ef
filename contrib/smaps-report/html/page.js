/* ---- the head ---- */

function drawHead() {
  const { trigger } = data;
  const facts = [time(data.time), data.kernel && "Linux " + data.kernel,
    data.mem_total && bytes(data.mem_total) + " of memory",
    data.mem_available && bytes(data.mem_available) + " available",
    plural(processes.length, "process", "processes") + (data.left_out ? " of " + number(processes.length + data.left_out) + " listed" : ""),
    data.plugin_version && "plugin " + data.plugin_version];
  byId("host").textContent = data.host ?? "unknown host";
  byId("origin").textContent = facts.filter(Boolean).join(" · ");
  byId("version").textContent = data.version;
  document.title = (data.host ?? "smaps-report") + " " + time(data.time) + (data.scope === undefined ? "" : " " + data.scope);
  if (trigger.kind !== "notification") return;
  byId("alarm").hidden = false;
  byId("alarm").className = trigger.severity ?? "";
  byId("alarm").append(make("b", {}, (trigger.severity ?? "alarm").toUpperCase()), " about ",
    make("bdi", {}, trigger.group ?? "a group"), " at " + time(trigger.time ?? NaN) + ": ", make("bdi", {}, trigger.message ?? ""));
  const own = groups.find((group) => group.name === data.scope);
  if (own?.cgroup_limit !== undefined) byId("alarm").append(" The limit of the group is " + limitOf(own) + ".");
  if (data.last_known)
    byId("alarm").append(" The processes of the group had ended: its values are the last known, of " + time(data.last_known) + ".");
}

function startTheme() {
  const root = document.documentElement, button = byId("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  prefersDark.addEventListener("change", name);
  name();
}

/* ---- titles, where there is no mouse ---- */

/* The pieces of a bar are too small for a finger: a tap shows them all. */
function tipOf(target) {
  const bar = target.closest(".bar");
  if (bar) return [...bar.children].map((piece) => piece.title).join("\n");
  /* These elements react to a click themselves. */
  if (target.closest("button, .link, .level1.open, .level2")) return "";
  return target.closest("[title]")?.title ?? "";
}

function startTips() {
  const tip = byId("tip"), hide = () => { tip.hidden = true; };
  addEventListener("pointerdown", hide);
  addEventListener("scroll", hide, true);
  addEventListener("pointerup", (event) => {
    const text = event.pointerType === "mouse" ? "" : tipOf(event.target);
    if (!text) return;
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect(), room = document.documentElement.clientWidth;
    tip.style.setProperty("left", Math.max(Math.min(event.clientX - width / 2, room - width - 8), 8) + "px");
    tip.style.setProperty("top", (event.clientY > height + 24 ? event.clientY - height - 16 : event.clientY + 16) + "px");
  });
}

/* ---- tables ---- */

const column = (title, key, more) => ({ title, class: "number", value: (row) => row[key],
  text: (row) => bytes(row[key]), tip: (row) => exact(row[key]), ...more });

const pssColumn = column("PSS", "pss", {
  text: (row) => amount(row.pss, row.pss_error),
  tip: (row) => exact(row.pss) + (row.pss_error ? " ± " + bytes(row.pss_error) : ""),
});

const kindColumns = [
  column("Anonymous", "anon", { class: "number wide", hint: "its part of PSS" }),
  column("Files", "file", { class: "number wide", hint: "its part of PSS" }),
  column("Shmem", "shmem", { class: "number wide", hint: "shared memory and tmpfs: its part of PSS" }),
];

/* What an interpreter runs stands before its command line: the class of java. */
function commandOf(row) {
  const program = (row.command ?? "").split(" ")[0].split("/").pop();
  return !row.comm || !row.command || row.command.startsWith(row.comm) || program.startsWith(row.comm) ? row.command
    : row.comm + ": " + row.command;
}

function drawProcesses() {
  const changes = new Map();
  for (const row of data.old && data.old.processes ? objects(data.old.change_columns, data.old.processes) : [])
    if (row.new_pid !== null) changes.set(row.new_pid, row.old === null || row.new === null ? null : row.new - row.old);
  const change = (row) => row.pss === null ? null : changes.has(row.pid) ? changes.get(row.pid) : 0;
  const columns = [
    pssColumn,
    { title: "Command", class: "name long", isText: true, value: commandOf },
    { title: "PID", class: "number", isText: true, value: (row) => row.pid },
    { title: "User", class: "name", isText: true, value: (row) => row.user },
    { title: "Group", class: "name", isText: true, value: (row) => row.groups.map((i) => groups[i].name).join(", ") },
    column("USS", "uss"), column("RSS", "rss"), column("Swap", "swap"), ...kindColumns,
    { title: "Uptime", class: "number wide", value: (row) => row.uptime, text: (row) => duration(row.uptime) },
    { title: "Values", class: "wide", isText: true, value: (row) => row.source,
      tip: (row) => sourceOf(row), hint: "read in this interval, or another source" },
  ];
  if (data.old && data.old.processes)
    columns.splice(1, 0, { title: "Change", class: "number", value: change, text: (row) => signed(change(row)),
      mark: (row) => directionOf(change(row)) });
  const table = makeTable({ title: "Processes", columns, rows: processes, sort: "PSS", hasSearch: true,
    note: data.left_out ? plural(data.left_out, "more process", "more processes") + " of the group, smaller than these, "
      + (data.left_out === 1 ? "is" : "are") + " not listed." : null });
  byId("processes").append(table.element);
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input")) return;
    event.preventDefault();
    table.search.focus();
  });
}

/* The processes of a capture whose mappings are missing. */
function missingMappings() {
  if (data.last_known) return "The processes of the group had ended before their mappings could be read.";
  const n = data.scope ? processes.filter((row) => !row.mappings && row.source !== "parent").length : 0;
  return n ? "The mappings of " + plural(n, "process", "processes") + " could not be read." : null;
}

function drawMappings() {
  const note = missingMappings();
  if (!data.mappings.length) {
    byId("mappings").append(make("h2", {}, "Mappings"), make("p", { class: "muted" }, note
      || "Only a capture has the mappings of processes: libraries, heaps, files. This is a snapshot of all processes."));
    return;
  }
  const columns = [
    pssColumn, { title: "Name", class: "name long", isText: true, value: (row) => row.label },
    { title: "Processes", class: "number", value: (row) => row.processes, text: (row) => number(row.processes) },
    column("Private", "uss"), column("RSS", "rss"), column("Swap", "swap"), ...kindColumns,
    column("Size", "size", { class: "number wide" }),
    { title: "Rights", class: "wide", isText: true, value: (row) => row.permissions },
  ];
  byId("mappings").append(makeTable({ title: "Mappings", note, columns, rows: mappingObjects(data.mappings), sort: "PSS",
    hasSearch: true }).element);
}

drawHead();
startTheme();
startTips();
drawStrip();
drawGroups();
drawChanges();
startMap();
drawProcesses();
drawMappings();
