"use strict";
// Tables marked "sortable": a click on a heading sorts, a second one the other way round.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    // no <button>: browsers leave those out of headings that they repeat on every printed page
    const button = document.createElement("span");
    button.setAttribute("role", "button");
    button.tabIndex = 0;
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    });
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        return typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      };
      body.append(...[...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b))));
    });
  });
}
// A small button; people without a script have the table and the picture, and nothing that does not work.
const tool = (text, act) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "tool";
  button.textContent = text;
  button.addEventListener("click", () => act(button));
  return button;
};
const said = (button, text) => {
  const before = button.textContent;
  button.textContent = text;
  setTimeout(() => { button.textContent = before; }, 1500);
};
// Tables are copied with tabs between the cells, which is what spreadsheets take.
const asText = (table) => [...table.rows].map((row) => [...row.cells].map((cell) =>
  cell.textContent.trim()).join("\t")).join("\n");
const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");  // where the clipboard is not to be had that way
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};
for (const table of document.querySelectorAll("table")) {
  const button = tool("Copy", async () => { await copy(asText(table)); said(button, "Copied"); });
  button.setAttribute("aria-label", `Copy the table: ${table.caption.textContent.trim()}`);
  table.caption.firstElementChild.append(button);
}
// Long tables are filtered by what is typed; on paper all rows are there again.
for (const table of document.querySelectorAll("table.sortable")) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 15) continue;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "tool";
  field.placeholder = "Filter";
  field.setAttribute("aria-label", `Filter the rows: ${table.caption.textContent.trim()}`);
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const row of rows) row.classList.toggle("out", !row.textContent.toLowerCase().includes(wanted));
  });
  table.caption.firstElementChild.append(field);
}
// What is folded is printed open.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
// Pictures are saved as they look: colours come from the page and are written into the file.
const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "opacity", "font-size", "font-family", "font-weight", "text-anchor"];
const alone = (svg) => {
  const copied = svg.cloneNode(true);
  const [from, to] = [svg, copied].map((root) => [root, ...root.querySelectorAll("*")]);
  from.forEach((element, k) => {
    const computed = getComputedStyle(element);
    for (const look of LOOKS) to[k].setAttribute(look, computed.getPropertyValue(look));
    to[k].removeAttribute("class");
  });
  copied.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copied);
};
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg");
  if (!svg) continue;
  const name = `${svg.dataset.name}.svg`;
  const button = tool("Save as SVG", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([alone(svg)], { type: "image/svg+xml" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  figure.querySelector("figcaption").append(button);
}
const dark = () => {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
const theme = document.getElementById("theme");
const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
theme.hidden = false;
theme.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; label(); });
label();
