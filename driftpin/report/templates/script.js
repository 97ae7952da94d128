"use strict";
// Everything works without this: it adds a cursor to the charts, copying, filtering and opening. It reads what the
// page shows, the tables of numbers included, and writes text only, never markup.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 };

  function sentence(heads, row) {
    return [...row.cells].map((cell, n) => [heads[n].textContent.trim(), cell.textContent])
      .filter(([, text]) => text.trim() !== "").map(([name, text]) => `${name} ${text.replace(/\n+$/, "")}`).join("  ·  ");
  }

  function chart(box) {
    const plots = box.querySelector(".plots"), readout = box.querySelector(".readout");
    const table = document.getElementById(`${box.dataset.figure}-table`);
    const rows = table.tBodies[0].rows, heads = table.tHead.rows[0].cells, last = rows.length - 1;
    const area = plots.querySelector(".plot");
    let at = -1;
    const show = (index) => {
      at = clamp(index, 0, last);
      const x = `${(100 * (at + 0.5)) / rows.length}%`;
      for (const line of all(".cursor", plots)) {
        line.setAttribute("x1", x);
        line.setAttribute("x2", x);
        line.setAttribute("visibility", "visible");
      }
      const said = sentence(heads, rows[at]);
      readout.hidden = false;
      readout.textContent = said;
      plots.setAttribute("aria-valuenow", String(at));
      plots.setAttribute("aria-valuetext", said);
    };
    const marked = plots.querySelector(".mark");
    const start = marked ? Math.floor((parseFloat(marked.getAttribute("x1")) / 100) * rows.length) : 0;
    plots.tabIndex = 0;
    plots.setAttribute("role", "slider");
    plots.setAttribute("aria-valuemin", "0");
    plots.setAttribute("aria-valuemax", String(last));
    plots.setAttribute("aria-valuenow", String(start));
    plots.addEventListener("focus", () => show(at < 0 ? start : at));
    plots.addEventListener("pointermove", (event) => {
      const frame = area.getBoundingClientRect();
      show(Math.floor(((event.clientX - frame.left) / frame.width) * rows.length));
    });
    plots.addEventListener("keydown", (event) => {
      const to = event.key === "Home" ? 0 : event.key === "End" ? last : at + (STEPS[event.key] ?? NaN);
      if (Number.isNaN(to)) return;
      event.preventDefault();
      show(to);
    });
  }

  function copying(code) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${code.textContent}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
    });
    code.after(button);
  }

  function filtering() {
    const tools = document.querySelector(".tools");
    if (!tools) return;
    tools.hidden = false;
    const name = document.getElementById("filter"), outcome = document.getElementById("outcome");
    const items = all("[data-name]"), said = document.getElementById("filtered");
    const apply = () => {
      const wanted = name.value.toLowerCase();
      let shown = 0;
      for (const item of items) {
        const fits = item.dataset.name.toLowerCase().includes(wanted) && ["", item.dataset.outcome].includes(outcome.value);
        item.classList.toggle("out", !fits);
        shown += fits;
      }
      said.textContent = `${shown} of ${items.length}`;
    };
    name.addEventListener("input", apply);
    outcome.addEventListener("change", apply);
    const turn = (open) => () => all("details.canary:not(.out)").forEach((one) => { one.open = open; });
    document.getElementById("open-all").addEventListener("click", turn(true));
    document.getElementById("close-all").addEventListener("click", turn(false));
    apply();
  }

  function printing() {
    let opened = [];
    addEventListener("beforeprint", () => {
      opened = all("details.canary:not([open]), #because details:not([open])");
      opened.forEach((one) => { one.open = true; });
    });
    addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
  }

  all("[data-figure]").forEach(chart);
  all(".command").forEach(copying);
  filtering();
  printing();
})();
