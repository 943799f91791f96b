// What happens in the page beyond links and forms? Times in the reader's zone, news as it comes, and a drawer.
"use strict";

(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Times.

  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const short = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
  const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
  const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

  function localTimes(root) {
    const now = new Date();
    for (const element of $$("time[datetime]:not([title])", root)) {
      const at = new Date(element.dateTime);
      if (isNaN(at)) continue;
      const today = at.toDateString() === now.toDateString();
      const date = at.getFullYear() === now.getFullYear() ? day : year;
      const inChart = element.closest(".ticks");
      element.title = `${whole.format(at)} (${element.dateTime})`;
      element.textContent = inChart ? short.format(at) : today ? clock.format(at) : `${date.format(at)} ${clock.format(at)}`;
    }
    for (const step of $$("rect[data-at]", root)) {
      const title = $("title", step);
      title.textContent = title.textContent.replace(/^.*?UTC/, short.format(new Date(step.dataset.at)));
      step.removeAttribute("data-at");
    }
  }

  // News: one stream per visible page. A browser holds few connections to one host, so hidden pages let go of theirs.

  const MOST_ROWS = 200;
  const state = { source: null, paused: false, last: "" };

  function tellLive(text, tone) {
    const place = $("#live");
    if (!place) return;
    place.textContent = text;
    place.className = `live ${tone}`;
  }

  function listen() {
    const address = document.body.dataset.live;
    if (!address || state.source || document.hidden || state.paused) return;
    const url = new URL(address, location.href);
    const seen = document.body.dataset;
    if (state.last) url.searchParams.set("after", state.last);
    // What the page shows is older than its stream: it says which state that was, and hears at once of a later one.
    if (seen.seenServers) url.searchParams.set("seen_servers", seen.seenServers);
    if (seen.seenLog) url.searchParams.set("seen_log", seen.seenLog);
    const source = new EventSource(url);
    state.source = source;
    source.onopen = () => tellLive("Live", "good");
    source.onerror = () => {
      tellLive("Connection lost, trying again", "bad");
      // After a refusal the browser gives up by itself.
      if (source.readyState === EventSource.CLOSED) {
        hangUp();
        comeBack();
      }
    };
    for (const name of ["servers", "calls", "log"]) {
      source.addEventListener(name, (event) => {
        if (name === "servers") seen.seenServers = event.data;
        if (name === "log") seen.seenLog = event.data;
        if (window.htmx) htmx.trigger(document.body, `live:${name}`);
      });
    }
    source.addEventListener("rows", (event) => {
      state.last = event.lastEventId || state.last;
      addRows(event.data);
    });
  }

  async function comeBack() {
    try {
      const answer = await fetch("/ui/nav", { redirect: "manual" });
      if (answer.type === "opaqueredirect") {
        tellLive("You are logged out. Load the page again.", "bad");
        return;
      }
    } catch {
      // Nobody answers; somebody may later.
    }
    setTimeout(listen, 5000);
  }

  function hangUp() {
    if (state.source) state.source.close();
    state.source = null;
  }

  function addRows(html) {
    const body = $("#records");
    if (!body) return;
    const holder = document.createElement("template");
    holder.innerHTML = `<table><tbody>${html}</tbody></table>`;
    const rows = $$("tr", holder.content).filter((row) => !row.dataset.id || !$(`tr[data-id="${row.dataset.id}"]`, body));
    for (const row of rows) row.classList.add("new");
    body.prepend(...rows);
    for (const row of rows) {
      localTimes(row);
      if (window.htmx) htmx.process(row);
    }
    for (const row of $$("tr", body).slice(MOST_ROWS)) row.remove();
  }

  function setUpPause() {
    const button = $("#pause");
    if (!button) return;
    button.addEventListener("click", () => {
      state.paused = !state.paused;
      button.setAttribute("aria-pressed", String(state.paused));
      button.textContent = state.paused ? "Go on" : "Pause";
      if (state.paused) {
        hangUp();
        tellLive("Paused", "wait");
      } else {
        listen();
      }
    });
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hangUp();
    else listen();
  });
  window.addEventListener("pagehide", hangUp);
  window.addEventListener("pageshow", listen);

  // Parts of a page that are drawn anew must not take the reader's place away.

  let place = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const focused = document.activeElement;
    place = null;
    if (focused && focused.tagName === "A" && !focused.id) place = { href: focused.getAttribute("href"), element: focused };
    const log = $("#log-lines");
    if (log && event.detail.target === log) place = { atEnd: log.scrollHeight - log.scrollTop - log.clientHeight < 40, top: log.scrollTop };
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    localTimes(document);
    const log = $("#log-lines");
    if (place && "atEnd" in place && log) log.scrollTop = place.atEnd ? log.scrollHeight : place.top;
    else if (place && !document.contains(place.element)) {
      const again = $$("main a").find((link) => link.getAttribute("href") === place.href);
      if (again) again.focus({ preventScroll: true });
    }
    place = null;
    if (event.detail.target && event.detail.target.id === "drawer-body") openDrawer();
    const outcome = $("#outcome");
    if (outcome && event.detail.target && event.detail.target.id === "try-it") outcome.scrollIntoView({ block: "nearest" });
  });

  function openDrawer() {
    const drawer = $("#drawer");
    if (!drawer.open) drawer.showModal();
    drawer.scrollTop = 0;
  }

  // Small helps.

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select and copy it";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    }
    if (event.target.id === "drawer") event.target.close();
  });

  document.addEventListener("change", async (event) => {
    const into = event.target.dataset && event.target.dataset.into;
    if (into && event.target.files.length) $(`#${into}`).value = await event.target.files[0].text();
  });

  // The address says what was done; a page that is loaded again should not say it once more.
  function forgetDone() {
    const url = new URL(location.href);
    if (!url.searchParams.has("done")) return;
    url.searchParams.delete("done");
    history.replaceState(null, "", url);
  }

  document.documentElement.classList.add("scripted");
  localTimes(document);
  setUpPause();
  forgetDone();
  const log = $("#log-lines");
  if (log) log.scrollTop = log.scrollHeight;
  const automatic = $("form[data-submit]");
  if (automatic) automatic.submit();
  listen();
})();
