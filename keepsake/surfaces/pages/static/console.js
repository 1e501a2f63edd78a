// Theme: the choice is a cookie, so that the server renders it and nothing flashes.
const root = document.documentElement;
const all = (what, within = document) => within.querySelectorAll(what);
for (const form of all("form.themes")) form.addEventListener("submit", event => {
  const theme = event.submitter?.value ?? "";
  event.preventDefault();
  document.cookie = `theme=${theme}; path=/; max-age=${theme ? 31536000 : 0}; samesite=lax`;
  if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
  for (const button of all(".theme button")) button.setAttribute("aria-pressed", String(button.value === theme));
});
// A choice that leads somewhere leads there at once.
addEventListener("change", event => event.target.closest?.("form[data-go]")?.requestSubmit());
// "/" goes to the search field, as in the tools our readers know.
addEventListener("keydown", event => {
  const field = document.querySelector("[data-slash]");
  if (event.key !== "/" || !field || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  event.preventDefault();
  field.focus();
});
addEventListener("click", async event => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const source = button.dataset.copy ? document.getElementById(button.dataset.copy) : button.previousElementSibling;
  try { await navigator.clipboard.writeText(source.textContent.trim()); } catch { return; }
  const before = button.innerHTML;
  button.textContent = "Copied";
  setTimeout(() => { button.innerHTML = before; }, 1500);
});
// Times in the reader's zone; the server tells them in UTC.
const told = (moment, how) => new Intl.DateTimeFormat("en-GB", how).format(moment).replace(",", "");
const clock = { hour: "2-digit", minute: "2-digit" }, date = { day: "numeric", month: "short", year: "numeric" };
function zone(within) {
  for (const time of all("time[data-as]", within)) {
    const moment = new Date(time.dateTime);
    time.title = `${told(moment, date)}, ${told(moment, { ...clock, timeZoneName: "short" })}`;
    if (time.dataset.as === "day") time.textContent = told(moment, { weekday: "short", ...clock });
    if (time.dataset.as === "date") time.textContent = told(moment, date);
    if (time.dataset.as === "clock") time.textContent = told(moment, clock);
  }
}
// Days begin at the reader's midnight; the server counts them.
document.cookie = `offset=${-new Date().getTimezoneOffset()}; path=/console; max-age=31536000; samesite=lax`;
// A node of the picture leads where its line in the list does.
addEventListener("click", event => {
  const node = event.target.closest?.(".graph [data-id]");
  if (node) document.querySelector(`a[data-node="${node.dataset.id}"]`)?.click();
});
// A graph wider than the screen opens with the chosen node in the middle, else in its own.
function middle(box, node) {
  const inner = node.getBoundingClientRect(), view = box.getBoundingClientRect();
  box.scrollLeft += inner.left + inner.width / 2 - view.left - view.width / 2;
  box.scrollTop += inner.top + inner.height / 2 - view.top - view.height / 2;
}
function centre(within) {
  for (const box of all(".scroll:has(.graph)", within)) middle(box, box.querySelector(".node.sel") ?? box.querySelector(".graph"));
}
// A row that a phone moves sideways opens with what is chosen in view.
for (const row of all(".tabs, .filters")) {
  const chosen = row.querySelector("[aria-current], [aria-pressed=true]");
  if (chosen?.getBoundingClientRect().right > row.getBoundingClientRect().right) middle(row, chosen);
}
function shown(within) { zone(within); centre(within); }
shown(document);
addEventListener("htmx:after:swap", () => shown(document));
// An answer that is kept has an address of its own.
addEventListener("asked", event => {
  if (event.detail?.data?.startsWith("/console/")) history.replaceState(history.state, "", event.detail.data);
});
