// Makes the columns of tables sortable; without script the rows stay in the order of the report.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column], value = cell.dataset.value;
    return value === undefined ? null : Number(value);
  };
  const sort = (column, ascending, numbers) => {
    const sign = ascending ? 1 : -1;
    const compare = (one, other) => {
      if (one.classList.contains("rest") !== other.classList.contains("rest")) return one.classList.contains("rest") ? 1 : -1;
      if (!numbers) return sign * one.cells[column].textContent.localeCompare(other.cells[column].textContent, "en", { numeric: true });
      const left = key(one, column), right = key(other, column);
      if (left === null || right === null) return (left === null) - (right === null);
      return sign * (left - right);
    };
    body.append(...[...rows].sort(compare));
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", ascending ? "ascending" : "descending");
  };
  heads.forEach((head, column) => {
    if (head.tagName !== "TH") return;
    const numbers = rows.some((row) => row.cells[column].dataset.value !== undefined);
    // Texts between the first column and the examples, such as means with their ranges, have no order.
    if (column && !numbers && !rows.some((row) => row.cells[column].classList.contains("text"))) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    // Numbers start with the largest, because that is the one that is looked for.
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      sort(column, now ? now === "descending" : !numbers, numbers);
    });
    head.append(button);
  });
}
