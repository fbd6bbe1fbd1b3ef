"use strict";
/* The data of the report, and small things that all of the page uses. Names come
 * from strangers: they become text of elements, and never markup. */

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/* Makes an element. Strings among its children are text. */
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null) continue;
    if (name === "class") element.className = value;
    else if (name === "title") element.title = value;
    else if (name === "on") for (const type in value) element.addEventListener(type, value[type]);
    else if (name === "style") for (const key in value) element.style.setProperty(key, value[key]);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/* The rows of a table as objects; unknown values are null. */
function objects(columns, rows) {
  return rows.map((row) => {
    const object = {};
    columns.forEach((column, i) => { object[column] = row[i] ?? null; });
    return object;
  });
}

/* ---- units: as in the tables of text (smaps/format.h) ---- */

const UNKNOWN = "–";

function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0, rest = Math.abs(value);
  for (; rest >= 999.5 && unit < units.length - 1; unit++) rest /= 1024;
  const digits = unit === 0 || rest >= 99.95 ? 0 : rest >= 9.995 ? 1 : 2;
  return (value < 0 ? "−" : "") + rest.toFixed(digits) + " " + units[unit];
}

/* An error is shown if it is more than a twentieth of the amount. */
const doubt = (value, error) => error > value / 20 ? "± " + bytes(error) : "";

function amount(value, error, isLeast) {
  if (value === null || value === undefined) return UNKNOWN;
  return ((isLeast ? "≥ " : "") + bytes(value) + " " + doubt(value, error)).trim();
}

function signed(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return value > 0 ? "+" + bytes(value) : bytes(value);
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  const units = [["d", 86400, "h", 3600], ["h", 3600, "m", 60], ["m", 60, "s", 1]];
  for (const [name, size, smaller, part] of units) {
    const rounded = Math.round(seconds / part) * part;
    if (rounded >= size)
      return Math.floor(rounded / size) + name + String(rounded % size / part).padStart(2, "0") + smaller;
  }
  return seconds.toFixed(1) + "s";
}

function percent(part, whole) {
  if (part === null || part === undefined || !whole) return UNKNOWN;
  const value = 100 * part / whole;
  return (value < 9.95 ? value.toFixed(1) : Math.round(value)) + " %";
}

const number = (value) => value === null || value === undefined ? UNKNOWN
  : String(value).replace(/\B(?=(\d{3})+$)/g, ",");

const plural = (n, word, words) => number(n) + " " + (n === 1 ? word : words || word + "s");

/* The range of a Date. */
const time = (seconds) => Math.abs(seconds) <= 8.64e12
  ? new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC" : "unknown time";

const exact = (value) => value === null || value === undefined ? UNKNOWN
  : bytes(value) + (value >= 1024 ? " (" + number(value) + " bytes)" : "");

/* ---- the parts of a PSS ---- */

const KINDS = [
  { key: "anon", name: "anonymous" },
  { key: "file", name: "files" },
  { key: "shmem", name: "shared memory" },
  { key: "rest", name: "of unknown kind" },
];

/* {anon, file, shmem, rest}, which add up to the PSS. */
function kindsOf(one) {
  const kinds = { anon: one.anon || 0, file: one.file || 0, shmem: one.shmem || 0 };
  kinds.rest = Math.max((one.pss || 0) - kinds.anon - kinds.file - kinds.shmem, 0);
  return kinds;
}

/*
 * The pieces of a PSS: each kind, private and then shared. What is private
 * beside anonymous memory is taken to be of files first: shared memory is
 * seldom private.
 */
function pieces(one) {
  const kinds = kindsOf(one);
  const isKnown = one.private_anon !== null && one.private_anon !== undefined;
  let left = isKnown ? Math.max(one.uss - one.private_anon, 0) : 0;
  const own = { anon: isKnown ? one.private_anon : 0 };
  for (const key of ["file", "shmem"]) {
    own[key] = Math.min(left, kinds[key]);
    left -= own[key];
  }
  own.rest = Math.min(one.uss ?? 0, kinds.rest);
  return KINDS.flatMap(({ key, name }) => [
    { kind: key, name: name + (one.uss === null || one.uss === undefined ? "" : ", private"), size: own[key] },
    { kind: key, name: name + ", shared with others", isShared: true, size: kinds[key] - own[key] },
  ]).filter((piece) => piece.size > 0);
}

/* The four quadrants: {anon, other} of {own, shared}, and the error of all. */
function quadrants(one) {
  if (one.private_anon === null || one.private_anon === undefined) return null;
  const other = Math.max(one.uss - one.private_anon, 0);
  return {
    anon: { own: one.private_anon, shared: Math.max(one.anon - one.private_anon, 0) },
    other: { own: other, shared: Math.max(one.file + one.shmem - other, 0) },
    error: one.private_error,
  };
}

function quadrantTable(one) {
  const found = quadrants(one);
  if (!found) return make("p", { class: "muted" }, "It is unknown how much of the private memory is anonymous.");
  const cell = (value, kind) => make("td", {
    class: "quadrant " + kind, style: { "--share": one.pss ? Math.round(100 * value / one.pss) + "%" : "0%" },
    title: exact(value) + (found.error ? " ± " + bytes(found.error) : ""),
  }, amount(value, found.error), make("small", {}, percent(value, one.pss)));
  const row = (name, kind, parts) => make("tr", {}, make("th", { scope: "row" }, name),
    cell(parts.own, kind), cell(parts.shared, kind));
  return make("table", { class: "quadrants" },
    make("caption", {}, "PSS " + amount(one.pss, one.pss_error, one.at_least)),
    make("thead", {}, make("tr", {}, make("td"), make("th", { scope: "col" }, "private"),
      make("th", { scope: "col" }, "shared"))),
    make("tbody", {}, row("anonymous", "anon", found.anon), row("files, shared memory", "file", found.other)));
}

/* A list of names and values; those of unknown value are left out. */
function factList(facts) {
  return make("dl", {}, ...facts.filter(([, text]) => text && text !== UNKNOWN)
    .map(([name, text]) => make("div", { class: text.length > 40 ? "whole" : null }, make("dt", {}, name), make("dd", {}, text))));
}

function swatch(kind, ...words) {
  return make("li", {}, make("i", { class: "swatch " + kind }), ...words);
}

const groups = data.groups;
const processes = objects(data.process_columns, data.processes);

/* The other memory of a mapping is of files or is shared memory. */
function mappingObjects(rows) {
  return objects(data.mapping_columns, rows).map((row) => {
    row.file = row.anon === null ? null : Math.max(row.pss - row.anon - row.shmem, 0);
    row.label = row.name ?? "[rest]";
    return row;
  });
}
const groupName = (row) => row.groups.length ? groups[row.groups[0]].name : "";
const processLabel = (row) => (row.comm ?? "-") + " " + row.pid;
