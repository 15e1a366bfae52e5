"use strict";
// Fetches the page again and puts what has changed in place of what was there. Without it, the page works all the same.
(() => {
  const every = 5000;
  const pause = document.getElementById("pause");
  const stale = document.getElementById("stale");
  let paused = false;
  let asking = false;
  let failed = 0;

  // swap keeps what was opened or closed, and where the keyboard is.
  const swap = (old, next) => {
    if (old.innerHTML === next.innerHTML) return;
    for (const d of old.querySelectorAll("details[id]")) {
      const twin = next.querySelector("#" + CSS.escape(d.id));
      if (twin) twin.open = d.open;
    }
    const held = old.contains(document.activeElement) ? document.activeElement : null;
    const details = held && held.closest("details[id]");
    const children = document.createDocumentFragment();
    while (next.firstChild) children.append(document.adoptNode(next.firstChild));
    old.replaceChildren(children);
    if (details) {
      const again = document.getElementById(details.id);
      if (again) again.querySelector("summary").focus({ preventScroll: true });
    }
  };

  const turn = async () => {
    if (paused || asking || document.hidden) return;
    asking = true;
    try {
      const answer = await fetch("/status", { cache: "no-store", signal: AbortSignal.timeout(12000) });
      if (!answer.ok) throw new Error("it answers " + answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.title = page.title;
      for (const next of page.querySelectorAll("[data-part]")) {
        const old = document.getElementById(next.id);
        if (old) swap(old, next);
      }
      failed = 0;
    } catch (e) {
      failed++;
    } finally {
      asking = false;
    }
    document.documentElement.classList.toggle("old", failed > 1);
    const text = failed > 1 ? "no answer from this node: what is shown is old" : "";
    if (stale.textContent !== text) stale.textContent = text;
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "resume" : "pause";
    turn();
  });
  document.addEventListener("visibilitychange", turn);
  setInterval(turn, every);
})();
