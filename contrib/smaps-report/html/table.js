/*
 * A table that sorts by each of its columns and that can be searched. A column
 * has a title, value(row), by which it sorts, and may have text(row), what is
 * shown; isText sorts upwards first; mark(row) is a class of the cell.
 */
const ROWS = 50;
const collator = new Intl.Collator("en", { numeric: true });

function compareValues(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(a, b);
}

/* Unknown values come last in both directions. */
function sortRows(rows, column, isUp) {
  const keyed = rows.map((row) => [column.value(row) ?? null, row]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return isUp ? compareValues(a, b) : compareValues(b, a);
  });
  return keyed.map(([, row]) => row);
}

/* The end stays, and the beginning takes the room that is left. */
function cutInTheMiddle(text) {
  const letters = [...text], tail = letters.length > 40 ? letters.splice(-20).join("") : "";
  return make("div", { class: "middle" }, make("span", {}, letters.join("")), tail ? make("span", {}, tail) : null);
}

function makeTable({ title, note, columns, rows, sort, hasSearch, limit = ROWS }) {
  const state = { column: columns.find((column) => column.title === sort), isUp: false, limit, words: [] };
  if (state.column) state.isUp = Boolean(state.column.isText);
  const body = make("tbody"), count = make("span", { class: "muted", role: "status" });
  const more = make("button", { type: "button", class: "screen", on: { click: () => { state.limit = Infinity; draw(); } } });
  const haystack = new Map();
  const heads = columns.map((column) => {
    const button = make("button", { type: "button", on: { click: () => sortBy(column) } }, column.title);
    return make("th", { scope: "col", class: column.class, title: column.hint }, button);
  });

  function cellText(column, row) {
    const value = column.text ? column.text(row) : column.value(row);
    return value === null || value === undefined ? UNKNOWN : String(value);
  }

  function isFound(row) {
    if (!haystack.has(row))
      haystack.set(row, columns.map((column) => cellText(column, row)).join("\n").toLowerCase());
    return state.words.every((word) => haystack.get(row).includes(word));
  }

  function sortBy(column) {
    state.isUp = state.column === column ? !state.isUp : Boolean(column.isText);
    state.column = column;
    draw();
  }

  function drawRow(row) {
    return make("tr", {}, ...columns.map((column) => {
      const text = cellText(column, row);
      const hint = column.tip ? column.tip(row) : column.isText ? text : null;
      return make("td", { class: [column.class, column.mark && column.mark(row)].filter(Boolean).join(" ") || null,
        title: hint }, column.class?.includes("long") ? cutInTheMiddle(text) : text);
    }));
  }

  function draw() {
    const found = state.words.length ? rows.filter(isFound) : rows;
    const sorted = state.column ? sortRows(found, state.column, state.isUp) : found;
    body.replaceChildren(...sorted.slice(0, state.limit).map(drawRow));
    columns.forEach((column, i) => {
      if (column === state.column) heads[i].setAttribute("aria-sort", state.isUp ? "ascending" : "descending");
      else heads[i].removeAttribute("aria-sort");
    });
    more.hidden = sorted.length <= state.limit;
    more.textContent = "Show all " + number(sorted.length);
    count.textContent = (found.length === rows.length ? number(rows.length)
      : number(found.length) + " of " + number(rows.length))
      + (sorted.length > state.limit ? ", the first " + number(state.limit) + " shown" : "");
  }

  const search = hasSearch ? make("input", {
    type: "search", placeholder: "search", "aria-label": "Search: " + title, class: "screen",
    on: { input: () => { state.words = search.value.toLowerCase().split(/\s+/).filter(Boolean); draw(); } },
  }) : null;
  draw();
  return {
    search,
    element: make("div", { class: "table" },
      make("div", { class: "bar-of-table" }, make("h2", {}, title), count, search),
      note ? make("p", { class: "muted" }, note) : null,
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
        make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)), more),
  };
}
