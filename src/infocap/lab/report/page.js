"use strict";
// All that makes a page respond; run again when a live page has got new contents, until the signal ends the last run.
const begin = (signal) => {
  const data = JSON.parse(document.getElementById("infocap-data")?.textContent ?? "null");
  const functions = data?.functions;
  const total = functions?.capacity.length;
  const HALF_WIDTH_95 = 1.959963984540054; // of a 95 % interval, in standard errors
  const NBSP = "\u00a0";
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // ---- numbers and names, as the page itself writes them

  const minus = (text) => text.replace("-", "\u2212");

  function decimalsFor(error) {
    return error > 0 ? Math.min(Math.max(Math.ceil(-Math.log10(error)) + 1, 0), 5) : 3;
  }

  function withError(value, error) {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    if (!error) return minus(value.toFixed(3));
    if (error > 1) return "cannot be told"; // a capacity lies between 0 and 1
    const decimals = decimalsFor(error);
    const shown = error.toFixed(decimals).replace(/^0.00000$/, "<0.00001");
    return `${minus(value.toFixed(decimals))}${NBSP}±${NBSP}${shown}`;
  }

  function pValue(value) {
    if (value === null || value === undefined) return "–";
    return value < 0.001 ? "< 0.001" : value.toFixed(3);
  }

  const column = (name, i) => (functions[name] ? functions[name][i] : null);
  const error = (i) => column("standard_error", i);
  const label = (i) => functions.label[i];
  const shownLabel = (i) => (label(i) === "1" ? "constant" : label(i));

  // As the drawings name the kinds of functions by their number of variables.
  function kind(i) {
    const variables = functions.variables[i];
    return variables > 2 ? ">2" : String(variables);
  }

  // ---- tooltips: [heading, ...lines], a line is a text or a pair

  function aboutFunction(i) {
    const lines = [["capacity", withError(functions.capacity[i], error(i))]];
    if (error(i) !== null) {
      const centre = functions.unbiased ? functions.unbiased[i] : functions.capacity[i];
      const reach = HALF_WIDTH_95 * error(i);
      const decimals = decimalsFor(error(i));
      const ends = [centre - reach, centre + reach].map((end) => Math.min(Math.max(end, 0), 1).toFixed(decimals));
      lines.push(["95 % interval", `${ends[0]} to ${ends[1]}`]);
    }
    if (functions.p_value) lines.push(["p-value", pValue(functions.p_value[i])]);
    if (functions.threshold) lines.push(["threshold", Number(functions.threshold[i]).toPrecision(3)]);
    return [shownLabel(i), ...lines, ["degree", String(functions.degree[i])]];
  }

  function aboutDegree(degree, wantedKind) {
    const members = [];
    for (let i = 0; i < total; i += 1) {
      if (functions.degree[i] === degree && (!wantedKind || kind(i) === wantedKind)) members.push(i);
    }
    const nonzero = members.filter((i) => functions.capacity[i] > 0);
    nonzero.sort((a, b) => functions.capacity[b] - functions.capacity[a] || a - b);
    const sum = nonzero.reduce((all, i) => all + functions.capacity[i], 0);
    const names = { 0: "the constant", 1: "one variable", 2: "two variables", ">2": "more than two variables" };
    const heading = `Degree ${degree}${wantedKind ? `, ${names[wantedKind]}` : ""}: ${sum.toFixed(2)}`;
    const lines = nonzero.slice(0, 6).map((i) => [shownLabel(i), functions.capacity[i].toFixed(3)]);
    const rest = nonzero.length - lines.length;
    if (rest > 0) lines.push(`and ${rest} smaller of ${members.length} functions`);
    if (!nonzero.length) lines.push(`none of ${members.length} functions`);
    return [heading, ...lines];
  }

  function about(mark) {
    if (mark.dataset.function !== undefined) return aboutFunction(Number(mark.dataset.function));
    if (mark.dataset.degree !== undefined) return aboutDegree(Number(mark.dataset.degree), mark.dataset.kind);
    return mark.dataset.tip.split("\n");
  }

  const tip = byId("tip");

  function show(mark, x, y) {
    const [heading, ...lines] = about(mark);
    const strong = document.createElement("strong");
    strong.textContent = heading;
    tip.replaceChildren(strong, ...lines.map((line) => {
      const row = document.createElement("div");
      for (const text of [line].flat()) row.appendChild(document.createElement("span")).textContent = text;
      return row;
    }));
    mark.setAttribute("aria-label", [heading, ...lines.map((line) => [line].flat().join(" "))].join("; "));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 14 + width > innerWidth - 8 ? x - 14 - width : x + 14;
    const top = y + 14 + height > innerHeight - 8 ? y - 14 - height : y + 14;
    tip.style.left = `${Math.min(Math.max(left, 8), Math.max(innerWidth - width - 8, 8))}px`;
    tip.style.top = `${Math.max(top, 8)}px`;
  }

  const hide = () => { tip.hidden = true; };
  const markOf = (target) => (target && target.closest ? target.closest(".mark") : null);
  let pointer = null; // where it is, while it is on a mark

  function onPointer(event) {
    const mark = markOf(event.target);
    pointer = mark ? [event.clientX, event.clientY] : null;
    if (mark) show(mark, event.clientX, event.clientY);
    else if (!tip.hidden) onFocus();
  }

  function onFocus() {
    const mark = markOf(document.activeElement);
    if (!mark) return hide();
    const box = mark.getBoundingClientRect();
    return show(mark, box.right - 8, box.top + Math.min(box.height / 2, 20));
  }

  document.addEventListener("pointermove", onPointer, { signal });
  document.addEventListener("pointerdown", onPointer, { signal });
  document.addEventListener("focusin", onFocus, { signal });
  document.addEventListener("focusout", hide, { signal });
  document.addEventListener("scroll", () => {
    if (tip.hidden) return;
    const mark = pointer && markOf(document.elementFromPoint(...pointer));
    if (mark) show(mark, ...pointer);
    else onFocus();
  }, { passive: true, capture: true, signal });

  // One mark of each drawing can be reached with Tab, its neighbours with the arrow keys.
  for (const drawing of document.querySelectorAll("svg")) {
    const marks = drawing.querySelectorAll(".mark");
    if (!marks.length) continue;
    drawing.setAttribute("role", "group");
    marks.forEach((mark, number) => {
      mark.setAttribute("role", "img");
      mark.setAttribute("tabindex", number === 0 ? "0" : "-1");
    });
  }

  const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const mark = markOf(event.target);
    const step = STEPS[event.key];
    if (!mark || !step) return;
    event.preventDefault();
    const next = neighbour(mark, step);
    if (!next) return;
    mark.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  }, { signal });

  function neighbour(mark, [dx, dy]) {
    const centre = (shape) => {
      const box = shape.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    };
    const [x, y] = centre(mark);
    let best = null;
    let least = Infinity;
    for (const other of mark.closest("svg").querySelectorAll(".mark")) {
      const [ox, oy] = centre(other);
      const along = (ox - x) * dx + (oy - y) * dy;
      const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
      if (other !== mark && along > 0.5 && along + 3 * aside < least) {
        best = other;
        least = along + 3 * aside;
      }
    }
    return best;
  }

  // ---- the table of functions

  const PAGE = 200;
  const MOST_ROWS = 2000; // more would make the page slow; the download has them
  let order = null;
  let labels = null;
  let limit = PAGE;

  function cell(row, text) {
    const td = row.insertCell();
    td.textContent = text;
    return td;
  }

  function bar(width) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    svg.setAttribute("class", "share");
    svg.setAttribute("aria-hidden", "true");
    rect.setAttribute("width", width);
    rect.setAttribute("height", "100%");
    svg.appendChild(rect);
    return svg;
  }

  function addRow(body, i) {
    const row = body.insertRow();
    const value = functions.capacity[i];
    if (!(value > 0)) row.className = "zero";
    cell(row, shownLabel(i));
    cell(row, withError(value, error(i)));
    cell(row, "").appendChild(bar(`${(100 * Math.min(Math.max(value, 0), 1)).toFixed(1)}%`));
    if (functions.p_value) cell(row, pValue(functions.p_value[i]));
    cell(row, functions.degree[i]);
    cell(row, functions.variables[i]);
  }

  function fill() {
    if (!order) {
      order = Array.from({ length: total }, (_, i) => i);
      order.sort((a, b) => functions.capacity[b] - functions.capacity[a] || a - b);
      labels = Array.from({ length: total }, (_, i) => `${label(i)} ${shownLabel(i)}`.toLowerCase());
    }
    const words = byId("search").value.toLowerCase().replaceAll("*", " ").split(/[\s·]+/).filter(Boolean);
    const degree = byId("by-degree").value;
    const variables = byId("by-variables").value;
    const zeros = byId("zeros").checked;
    const found = order.filter((i) =>
      (zeros || functions.capacity[i] > 0)
      && (degree === "" || functions.degree[i] === Number(degree))
      && (variables === "" || functions.variables[i] === Number(variables))
      && words.every((word) => labels[i].includes(word)));
    const body = byId("rows");
    const shown = found.slice(0, Math.min(limit, MOST_ROWS));
    body.replaceChildren();
    shown.forEach((i) => addRow(body, i));
    byId("shown").textContent = found.length === 0
      ? "No function fits."
      : `${shown.length} of ${found.length} functions that fit, of ${total} in the basis.`
        + (shown.length === MOST_ROWS && found.length > MOST_ROWS ? " The download has them all." : "");
    byId("more").hidden = shown.length >= found.length || limit >= MOST_ROWS;
  }

  if (byId("search")) {
    for (const id of CONTROLS) {
      byId(id).addEventListener("input", () => {
        limit = PAGE;
        fill();
      });
    }
    document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
    byId("more").hidden = functions.capacity.filter((value) => value > 0).length <= byId("rows").rows.length;
    byId("more").addEventListener("click", () => {
      if (order) limit += PAGE;
      fill();
    });
  }

  // ---- tables that sort: a click on a column's name

  for (const heading of document.querySelectorAll(".sorts th")) {
    const button = heading.querySelector("button");
    button?.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") !== "descending";
      const value = (row) => {
        const cell = row.cells[heading.cellIndex];
        return Number(cell.querySelector("data")?.value ?? /\d[\d.]*/.exec(cell.textContent)?.[0] ?? -1);
      };
      const rows = [...heading.closest("table").tBodies[0].rows];
      rows.sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b)));
      heading.closest("table").tBodies[0].append(...rows);
      for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  }

  // ---- downloads

  const COLUMNS = ["capacity", "raw", "unbiased", "standard_error", "p_value", "threshold"];

  function csv() {
    const present = COLUMNS.filter((name) => functions[name]);
    const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const head = ["label", "degree", "variables", ...data.columns, ...present];
    const lines = [head.join(",")];
    for (let i = 0; i < total; i += 1) {
      lines.push([
        quoted(label(i)),
        functions.degree[i],
        functions.variables[i],
        ...functions.index.map((index) => index[i]),
        ...present.map((name) => functions[name][i] ?? ""),
      ].join(","));
    }
    const header = data.attributes.format
      ? [`# ${JSON.stringify({ ...data.attributes, metadata: data.metadata })}`]
      : [];
    return [...header, ...lines, ""].join("\n");
  }

  const slug = (text) => text.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").toLowerCase().slice(0, 60);

  function save(content, type, suffix, part = "") {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = `${slug(`${document.title} ${part}`) || "capacity"}.${suffix}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  byId("save-csv")?.addEventListener("click", () => save(csv(), "text/csv", "csv"));
  byId("save-json")?.addEventListener("click", () => save(JSON.stringify(data), "application/json", "json"));

  // ---- figures saved as files

  // A file has no style sheet, so the computed styles are written into it, always the light ones.

  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "text-anchor"];
  const FONT = "Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
  const DOTS_PER_UNIT = 4; // 1760 dots across: 300 per inch at 149 mm

  function alone(drawing) {
    const theme = root.dataset.theme;
    root.dataset.theme = "light";
    const copy = drawing.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll("*")];
    [drawing, ...drawing.querySelectorAll("*")].forEach((one, number) => {
      const style = getComputedStyle(one);
      for (const name of STYLES) copies[number].setAttribute(name, style.getPropertyValue(name));
      for (const name of ["class", "role", "tabindex"]) copies[number].removeAttribute(name);
    });
    drawing.querySelectorAll("*").forEach((one, number) => {
      if (one.classList.contains("mark") && !one.hasAttribute("fill")) copies[number + 1].remove();
    });
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    const { width, height } = drawing.viewBox.baseVal;
    const attributes = { xmlns: "http://www.w3.org/2000/svg", width, height, "font-family": FONT, fill: "black", stroke: "none" };
    for (const [name, value] of Object.entries(attributes)) copy.setAttribute(name, value);
    return new XMLSerializer().serializeToString(copy);
  }

  async function painted(drawing) {
    const { width, height } = drawing.viewBox.baseVal;
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([alone(drawing)], { type: "image/svg+xml" }));
    await image.decode();
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: DOTS_PER_UNIT * width, height: DOTS_PER_UNIT * height });
    const paint = canvas.getContext("2d");
    paint.fillStyle = "white";
    paint.fillRect(0, 0, canvas.width, canvas.height);
    paint.drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    return new Promise((done) => { canvas.toBlob(done, "image/png"); });
  }

  for (const drawing of document.querySelectorAll("figure > .drawing")) {
    const figure = drawing.closest("figure");
    const title = figure.querySelector("h3").textContent;
    const line = figure.appendChild(document.createElement("p"));
    line.className = "save";
    const ways = {
      SVG: () => save(alone(drawing), "image/svg+xml", "svg", title),
      PNG: async () => save(await painted(drawing), "image/png", "png", title),
    };
    for (const [name, way] of Object.entries(ways)) {
      const press = line.appendChild(document.createElement("button"));
      Object.assign(press, { type: "button", textContent: name, title: `Save this figure as ${name}` });
      press.addEventListener("click", way);
    }
  }

  // ---- light and dark

  const button = byId("theme");
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : preferred.matches);
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  preferred.addEventListener("change", name, { signal });
  name();

  for (const part of document.querySelectorAll(".needs-script")) part.hidden = false;
};

const CONTROLS = ["search", "by-degree", "by-variables", "zeros"];
let running = new AbortController();
begin(running.signal);

// ---- a live page asks again and again, and takes what has changed

async function follow() {
  const byId = (id) => document.getElementById(id);
  const numbers = (page) => page.getElementById("infocap-data")?.textContent;
  for (;;) {
    await new Promise((done) => { setTimeout(done, 1000 * Number(byId("live").dataset.every)); });
    let text = null;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      text = answer.ok ? await answer.text() : null;
    } catch { /* nobody listens any more: said below */ }
    byId("unanswered").hidden = text !== null;
    if (text === null) continue;
    const next = new DOMParser().parseFromString(text, "text/html");
    if (numbers(next) === numbers(document)) {
      byId("live").replaceWith(next.getElementById("live"));
      continue;
    }
    const kept = CONTROLS.map((id) => [id, byId(id)?.value, byId(id)?.checked]);
    const parts = [...next.body.children].filter((part) => part.tagName !== "SCRIPT" || part.type);
    const focused = document.activeElement?.id;
    running.abort();
    document.body.replaceChildren(...parts);
    running = new AbortController();
    begin(running.signal);
    for (const [id, value, checked] of kept) if (byId(id) && value !== undefined) Object.assign(byId(id), { value, checked });
    if (CONTROLS.includes(focused)) byId(focused)?.focus({ preventScroll: true });
    if (kept.some(([, value, checked]) => checked || (value && value !== "on"))) byId("search")?.dispatchEvent(new Event("input"));
  }
}
if (document.getElementById("live")) follow();
