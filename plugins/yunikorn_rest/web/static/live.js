// Keeps an open page up to date: fetches it again after notices of changes, and changes what differs.
"use strict";
(() => {
  const LEAST = 1000; // ms between two updates
  const MOST = 15000; // ms without notices after which the page is fetched, so that times stay true
  const BUSY = 5; // an update begins only after so many times the time that the last one took
  const live = document.getElementById("live");
  const status = document.getElementById("status");
  const button = document.getElementById("pause");
  let source = null, timer = 0, begun = 0, took = 0, running = false, wanted = false, reachable = true, notices = false;
  let paused = sessionStorage.getItem("paused") === "yes";

  function show() {
    const [state, text] = paused ? ["paused", "paused"]
      : !reachable ? ["lost", "connection lost, trying again"]
      : notices ? ["live", "live"] : ["polling", "updated every 15 s"];
    if (status.dataset.state !== state) {
      status.dataset.state = state;
      status.textContent = text;
    }
    button.textContent = paused ? "Resume" : "Pause";
  }

  function schedule(delay) {
    clearTimeout(timer);
    timer = setTimeout(update, delay);
  }

  function soon() {
    if (running) wanted = true;
    else schedule(Math.max(0, begun + Math.max(LEAST, BUSY * took) - performance.now()));
  }

  async function update() {
    if (paused || document.hidden || running) return;
    running = true;
    wanted = false;
    begun = performance.now();
    try {
      const answer = await fetch(location.href, {
        cache: "no-cache", headers: {accept: "text/html"}, signal: AbortSignal.timeout(MOST),
      });
      if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      if (fresh && !paused) replace(fresh);
      reachable = true;
    } catch {
      reachable = false;
    }
    took = performance.now() - begun;
    running = false;
    show();
    if (wanted) soon();
    else schedule(reachable ? MOST : 2000);
  }

  function replace(fresh) {
    const active = document.activeElement;
    matchChildren(live, fresh);
    if (active !== document.activeElement && live.contains(active)) active.focus({preventScroll: true});
  }

  function match(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    // The reader opens and closes parts of the page.
    const kept = (name) => name === "open";
    for (const {name, value} of fresh.attributes) {
      if (!kept(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const {name} of [...old.attributes]) {
      if (!kept(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    matchChildren(old, fresh);
  }

  function matchChildren(old, fresh) {
    const known = new Map();
    for (const child of old.children) if (child.id) known.set(child.id, child);
    let next = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const same = child.id ? known.get(child.id) : undefined;
      if (same && same.nodeName === child.nodeName) {
        known.delete(child.id);
        if (same === next) next = next.nextSibling;
        else old.insertBefore(same, next);
        match(same, child);
      } else if (next && !child.id && !next.id && next.nodeName === child.nodeName) {
        const current = next;
        next = next.nextSibling;
        match(current, child);
      } else {
        const added = document.importNode(child, true);
        if (added.id && old !== live) added.classList.add("is-new");
        old.insertBefore(added, next);
      }
    }
    while (next) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
  }

  function connect() {
    disconnect();
    if (paused || document.hidden) return;
    source = new EventSource("/live");
    source.addEventListener("open", () => {
      // The page may have missed changes while there was no connection.
      if (!reachable || !notices) soon();
      notices = true;
      show();
    });
    source.addEventListener("change", soon);
    source.addEventListener("error", () => {
      notices = false;
      show();
      // Either the server is gone, or it has no room for another stream: the next update finds out.
      soon();
      if (source && source.readyState === EventSource.CLOSED) {
        disconnect();
        setTimeout(() => { if (!source) connect(); }, MOST);
      }
    });
  }

  function disconnect() {
    if (source) source.close();
    source = null;
    notices = false;
  }

  // A page that is not seen holds no connection: a browser has only six for all its tabs.
  function wake() {
    clearTimeout(timer);
    connect();
    if (!document.hidden && !paused) soon();
    show();
  }

  button.addEventListener("click", () => {
    paused = !paused;
    sessionStorage.setItem("paused", paused ? "yes" : "no");
    wake();
  });
  document.addEventListener("visibilitychange", wake);
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", (event) => { if (event.persisted) wake(); });
  document.getElementById("liveness").hidden = false;
  begun = performance.now();
  connect();
  show();
  schedule(MOST);
})();
