/* ---- the tree: groups, their processes, the mappings of these ---- */

function leavesOf(row) {
  if (!row.mappings)
    return KINDS.map(({ key, name }) => {
      const size = kindsOf(row)[key];
      return { label: name, size, one: { pss: size, [key]: size }, kinds: { [key]: size } };
    });
  const leaves = mappingObjects(row.mappings).map((one) => (
    { label: one.label, size: one.pss || 0, one, kinds: kindsOf(one) }));
  const rest = (row.pss || 0) - leaves.reduce((sum, leaf) => sum + leaf.size, 0);
  /* Mappings of unknown PSS; those of a sample add up to about the PSS. */
  if (leaves.some((leaf) => leaf.one.pss === null) && rest > 0)
    leaves.push({ label: "[unknown]", size: rest, one: { pss: rest }, kinds: { rest } });
  return leaves;
}

function processNode(row) {
  const node = {
    key: String(row.pid), label: processLabel(row), size: row.pss || 0, one: row,
    kinds: kindsOf(row), isOpen: true,
  };
  Object.defineProperty(node, "children", { get() { return this.leaves ??= leavesOf(row); } });
  return node;
}

function groupNode(label, one, members) {
  const children = members.map(processNode);
  const listed = children.reduce((sum, child) => sum + child.size, 0);
  /* A capture names the largest processes of its group only. */
  if (data.left_out > 0 && one && one.pss > listed)
    children.push({ label: "[rest]", size: one.pss - listed, one: { pss: one.pss - listed },
      kinds: { rest: one.pss - listed } });
  const node = { key: label, label, children, isOpen: true, kinds: {} };
  node.size = children.reduce((sum, child) => sum + child.size, 0);
  for (const child of children)
    for (const kind in child.kinds) node.kinds[kind] = (node.kinds[kind] || 0) + child.kinds[kind];
  /* A process of several groups is in one of them here: a group may have more. */
  const isWhole = one && members.every((row) => row.groups.length === 1);
  node.one = isWhole ? one : { pss: node.size, ...node.kinds };
  node.members = members.length;
  return node;
}

function makeTree() {
  const members = new Map();
  const scope = data.scope === undefined ? -1 : groups.findIndex((group) => group.name === data.scope);
  for (const row of processes) {
    const group = scope >= 0 && row.groups.includes(scope) ? scope : row.groups[0] ?? -1;
    if (!members.has(group)) members.set(group, []);
    members.get(group).push(row);
  }
  if (scope >= 0 && !members.has(scope)) members.set(scope, []);
  const children = [...members].map(([i, rows]) => groupNode(i < 0 ? "[no group]" : groups[i].name,
    groups[i], rows));
  const size = children.reduce((sum, child) => sum + child.size, 0);
  return { label: scope >= 0 ? "Capture" : "All groups", children, size, one: { pss: size }, isOpen: true };
}

/* ---- drawing ---- */

const map = { tree: makeTree(), path: [], tiles: [] };
const HEAD = 19;

/* The parts of a tile, in the colours of the kinds of memory. */
function paint(kinds) {
  const total = Object.values(kinds).reduce((sum, size) => sum + size, 0);
  let at = 0;
  const stops = KINDS.filter(({ key }) => kinds[key] > 0).map(({ key }) => {
    const from = at;
    at += 100 * kinds[key] / total;
    return `var(--${key}) ${from.toFixed(2)}% ${at.toFixed(2)}%`;
  });
  return stops.length ? `linear-gradient(90deg, ${stops.join(", ")})` : "var(--rest)";
}

function describe(node, parent) {
  const { one } = node;
  const lines = [node.label, "PSS " + amount(one.pss ?? node.size, one.pss_error, one.at_least)
    + (parent ? ", " + percent(node.size, parent.size) + " of " + parent.label : "")];
  for (const { key, name } of KINDS)
    if (node.kinds[key] > 0 && node.kinds[key] < node.size) lines.push(name + " " + bytes(node.kinds[key]));
  if (one.uss !== null && one.uss !== undefined) lines.push("private " + bytes(one.uss));
  if (one.swap > 0) lines.push("swap " + bytes(one.swap));
  if (one.command) lines.push(one.command);
  if (one.permissions) lines.push(one.permissions);
  return lines.join("\n");
}

function put(node, box, size, level, parent) {
  const part = (value, whole) => (100 * value / whole).toFixed(3) + "%";
  const hasText = box.w > 44 && box.h > 13;
  const title = describe(node, parent);
  const tile = make("div", {
    class: `tile level${level}` + (node.isOpen && level === 1 ? " open" : ""), title,
    style: {
      left: part(box.x, size.w), top: part(box.y, size.h), width: part(box.w, size.w),
      height: part(box.h, size.h), background: level === 1 && node.nested ? null : paint(node.kinds),
    },
  });
  if (hasText) tile.append(make("span", {}, node.label), " ", make("b", {}, bytes(node.size)));
  if (level === 1) {
    tile.setAttribute("role", node.isOpen ? "button" : "img");
    tile.setAttribute("aria-label", title);
    tile.tabIndex = map.tiles.length === 0 ? 0 : -1;
    map.tiles.push({ tile, node, box });
  } else {
    tile.setAttribute("aria-hidden", "true");
    tile.dataset.owner = map.tiles.length - 1;
  }
  return tile;
}

function inside(box) {
  return { x: box.x + 2, y: box.y + HEAD, w: box.w - 4, h: box.h - HEAD - 2 };
}

function drawTiles() {
  const element = byId("tiles"), node = map.path.at(-1) || map.tree;
  const size = { w: element.clientWidth || 1000, h: element.clientHeight || 420 };
  const drawn = [];

  map.tiles = [];
  map.width = element.clientWidth;
  squarify(node.children, { x: 0, y: 0, ...size }, (child, box) => {
    if (box.w < 2 || box.h < 2) return;
    child.nested = child.isOpen && box.w > 60 && box.h > 44;
    drawn.push(put(child, box, size, 1, node));
    if (child.nested)
      squarify(child.children, inside(box), (leaf, leafBox) => {
        if (leafBox.w > 3 && leafBox.h > 3) drawn.push(put(leaf, leafBox, size, 2, child));
      });
  });
  if (drawn.length === 0) drawn.push(make("p", { class: "muted" }, "Nothing here has a known PSS."));
  element.replaceChildren(...drawn);
}

/* ---- the way in and back ---- */

function drawPath() {
  const nodes = [map.tree, ...map.path];
  byId("path").replaceChildren(...nodes.flatMap((node, i) => {
    const words = [make("bdi", {}, node.label), " ", make("b", {}, bytes(node.size))];
    const isLast = i === nodes.length - 1;
    const step = isLast ? make("span", { "aria-current": "location" }, ...words)
      : make("button", { type: "button", on: { click: () => go(map.path.slice(0, i)) } }, ...words);
    return i === 0 ? [step] : [make("span", { class: "muted", "aria-hidden": "true" }, " › "), step];
  }));
}

function drawFacts() {
  const node = map.path.at(-1), { one } = node || {};
  const element = byId("facts");
  element.replaceChildren();
  if (!one) return;
  const facts = [["USS", bytes(one.uss)], ["RSS", bytes(one.rss)], ["swap", bytes(one.swap)]];
  if (node.members !== undefined) facts.push(["processes", number(node.members)]);
  else facts.push(["user", one.user === null ? null : String(one.user)], ["group", groupName(one)],
    ["threads", number(one.threads)], ["uptime", duration(one.uptime)], ["values", sourceOf(one)],
    ["command", one.command]);
  element.append(quadrantTable(one), factList(facts));
}

function sourceOf(row) {
  const age = row.age === null ? "" : ", read " + duration(row.age) + " before";
  return row.source === null ? null : row.source + age;
}

function show(path) {
  map.path = path;
  drawPath();
  drawTiles();
  drawFacts();
}

/* The place is in the address, so that the browser's way back works, too. */
const PLACE = "#map=";

function find(place) {
  const path = [];
  for (const key of place ? place.split("/").map(decodeURIComponent) : []) {
    const node = (path.at(-1) || map.tree).children.find((child) => child.isOpen && child.key === key);
    if (!node) break;
    path.push(node);
  }
  return path;
}

function here() {
  let place = "";
  try {
    place = location.hash.startsWith(PLACE) ? location.hash.slice(PLACE.length) : "";
    return find(place);
  } catch {
    return []; /* an address that somebody has typed */
  }
}

function go(path) {
  const came = map.path.length > path.length ? map.path[path.length] : null;
  const hadFocus = byId("tiles").contains(document.activeElement) || byId("path").contains(document.activeElement);

  location.hash = PLACE + path.map((node) => encodeURIComponent(node.key)).join("/");
  show(path);
  if (hadFocus) focusTile(map.tiles.find(({ node }) => node === came) || map.tiles[0]);
}

function openGroup(name) {
  const node = map.tree.children.find((child) => child.key === name);
  if (!node) return;
  go([node]);
  byId("map").scrollIntoView();
}

function focusTile(found) {
  if (!found) return;
  for (const { tile } of map.tiles) tile.tabIndex = -1;
  found.tile.tabIndex = 0;
  found.tile.focus({ preventScroll: true });
}

/* The nearest neighbour in that direction; the way aside counts double. */
function neighbour(from, key) {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  const middle = ({ box }) => ({ x: box.x + box.w / 2, y: box.y + box.h / 2 });
  const start = middle(from);
  let best = null, least = Infinity;
  for (const one of map.tiles) {
    const end = middle(one);
    const along = (end.x - start.x) * dx + (end.y - start.y) * dy;
    const aside = Math.abs((end.x - start.x) * dy) + Math.abs((end.y - start.y) * dx);
    if (one === from || along <= 0 || along + 2 * aside >= least) continue;
    best = one;
    least = along + 2 * aside;
  }
  return best;
}

function enter({ node }) {
  if (node.isOpen) go([...map.path, node]);
}

function startMap() {
  const element = byId("tiles");
  const unknown = processes.filter((row) => row.pss === null && row.source !== "parent").length;

  element.addEventListener("click", (event) => {
    const tile = event.target.closest(".tile");
    const found = tile && (tile.dataset.owner === undefined ? map.tiles.find((one) => one.tile === tile)
      : map.tiles[tile.dataset.owner]);
    if (found) enter(found);
  });
  element.addEventListener("keydown", (event) => {
    const from = map.tiles.find(({ tile }) => tile === document.activeElement);
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" || event.key === "Backspace") {
      if (map.path.length) go(map.path.slice(0, -1));
    } else if (from && (event.key === "Enter" || event.key === " ")) {
      enter(from);
    } else if (from && event.key.startsWith("Arrow")) {
      focusTile(neighbour(from, event.key));
    } else {
      return;
    }
    event.preventDefault();
  });
  byId("missing").hidden = unknown === 0;
  byId("missing").textContent = plural(unknown, "process", "processes")
    + " with unknown PSS " + (unknown === 1 ? "is" : "are") + " not in the map.";
  new ResizeObserver(() => {
    const focus = map.tiles.findIndex(({ tile }) => tile === document.activeElement);
    if (element.clientWidth === map.width) return;
    drawTiles();
    focusTile(map.tiles[focus]);
  }).observe(element);
  addEventListener("hashchange", () => {
    const path = here();
    if (path.at(-1) !== map.path.at(-1)) show(path);
  });
  show(here());
}
