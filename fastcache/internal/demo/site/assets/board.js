// The table of the front page: asks for each row's URL through the cache and
// shows what Cache-Status says of the answer.
//
// For browser tests: each row is [data-row="<id>"]; its .pill has
// data-result="none|hit|stale|miss|bypass|error"; the table's data-state is
// "busy" while rows are asked and "done" when all answers are there. Each row
// counts its answers in data-answers.
(function () {
  "use strict";

  const table = document.querySelector("[data-samples]");
  const rows = [...table.querySelectorAll("[data-row]")];
  const announce = document.querySelector("[data-announce]");
  const lanes = 3; // requests at a time: fewer than a browser's connections, so that none waits for one

  const forwarded = {
    "uri-miss": "Nothing was stored under this URL.",
    "vary-miss": "Stored, but not for this request's language or encoding.",
    "miss": "Nothing that was stored could answer this request.",
    "partial": "Only a part of it was stored.",
    "stale": "What was stored is past its time.",
    "request": "The request asked not to be answered from the cache.",
    "method": "Only answers to GET and HEAD are cached.",
    "bypass": "The cache keeps out of requests like this.",
  };
  const details = {
    "set-cookie": "Not stored: it sets a cookie, which is for one visitor.",
    "private": "Not stored: it is private, for one visitor.",
    "no-store": "Not stored: its Cache-Control says no-store.",
    "request-no-store": "Not stored: the request said no-store.",
    "vary-star": "Not stored: it varies on everything (Vary: *).",
    "vary-unlisted": "Not stored: it varies on a field that the option vary does not list.",
    "auth": "Not shared: the request carried credentials.",
    "too-big": "Not stored: it is too big for the cache.",
    "ttl-zero": "Not stored: it is stale from the start.",
    "status": "Not stored: answers with this status are not.",
    "match-header": "Not stored: the option match_header does not select it.",
    "request-fault": "Not stored: this request's own header may have caused the error.",
    "connection": "Not looked up: its Connection field takes fields away that the key may go by.",
    "partial": "Not stored: it is a part, and only whole answers are.",
    "cookie": "Not shared: the request carried a cookie and the answer does not say how long it is fresh.",
    "must-understand": "Not stored: it asks for rules that this cache does not know.",
    "method": "Only answers to GET and HEAD are cached.",
    "upgrade": "The request asked for another protocol.",
    "request-body": "The request had a body, which could change the answer.",
    "override": "The request carried a field that could replace its method or URL.",
    "conditional": "The request had a condition that only the origin can judge.",
    "range": "A part was asked for, and the whole is not stored.",
    "purged-in-flight": "Not stored: it was purged while it was fetched.",
    "disk-error": "Not stored: the disk failed.",
    "truncated": "Not stored: it ended too early.",
    "client-gone": "Not stored: the client left before the end.",
    "hijacked": "Not stored: another handler took over the connection.",
    "hit-for-miss": "The last answer could not be stored, so nobody waits for this one.",
    "wait-timeout": "Another request for it took too long, so this one went on its own.",
    "only-if-cached": "The request wanted a stored answer or none.",
    "request-no-cache": "The request asked for an answer that the origin has confirmed.",
    "request-max-age": "The request asked for a younger answer.",
    "request-min-fresh": "The request asked for an answer that stays fresh for longer.",
    "revalidated": "The origin confirmed the stored answer.",
    "stale-error": "The origin failed, so the stored answer stepped in.",
    "upstream-error": "The origin failed, and nothing was stored to step in.",
    "purged": "Purged.",
    "purge-miss": "There was nothing to purge.",
    "purge-denied": "This address may not purge.",
    "malformed-request": "Not stored: it answers a malformed request.",
    "store-off": "Not stored: the cache has no room by its configuration.",
    "event-stream": "Not stored: it is a stream of events without an end.",
    "bad-target": "The request names nothing that could be cached.",
  };

  // judge turns the parameters of Cache-Status into a result and its reason.
  function judge(s) {
    if (s.hit) {
      if (s.ttl <= 0) return ["stale", "Past its time, but handed out at once while a fresh one is fetched."];
      return ["hit", "Stored and still fresh. The origin was not asked."];
    }
    const detail = s.detail && (details[s.detail] || `Detail: ${s.detail}.`);
    const reasons = [];
    if (s["fwd-status"] === 304) reasons.push("Past its time; the origin was asked and said: unchanged.");
    else if (s.fwd && !(s.fwd === "uri-miss" && detail)) reasons.push(forwarded[s.fwd] || `Forwarded: ${s.fwd}.`);
    if (detail && detail !== forwarded[s.fwd]) reasons.push(detail);
    if (s.collapsed) reasons.push("Shared the answer to a request that was already under way.");
    if (s.stored) reasons.push("Stored now.");

    let result = "miss";
    if (["bypass", "method", "request"].includes(s.fwd)) result = "bypass";
    if (s["fwd-status"] === 304 || s.detail === "stale-error") result = "stale";
    return [result, reasons.join(" ")];
  }

  // fastcacheMember is what our cache says; others may have added members.
  function fastcacheMember(response) {
    const field = response.headers.get("Cache-Status");
    const members = field === null ? null : parseCacheStatus(field);
    return members && (members.findLast((m) => m.cache === "fastcache") || members.at(-1));
  }

  const show = (row, name, text) => { row.querySelector(`[data-${name}]`).textContent = text; };

  function setResult(row, result) {
    const pill = row.querySelector(".pill");
    pill.dataset.result = result;
    pill.textContent = result;
    const past = row.querySelector("[data-past]");
    const dot = document.createElement("i");
    dot.dataset.result = result;
    past.append(dot);
    while (past.children.length > 8) past.firstChild.remove();
  }

  async function ask(row) {
    const init = { method: row.dataset.method, cache: "no-store", headers: {} };
    const language = row.querySelector("[data-language]");
    if (language) init.headers["Accept-Language"] = language.value;
    if (row.dataset.range) init.headers.Range = row.dataset.range;
    if (row.dataset.body) init.body = new URLSearchParams(row.dataset.body);

    row.setAttribute("aria-busy", "true");
    const start = performance.now();
    try {
      const response = await fetch(row.dataset.url, init);
      const size = (await response.arrayBuffer()).byteLength;
      showAnswer(row, response, size, performance.now() - start);
    } catch (error) {
      setResult(row, "error");
      show(row, "why", `No answer: ${error.message}. Is the demo still running?`);
      show(row, "raw", "");
      row.clock = null;
      tick(row);
    }
    row.dataset.answers = Number(row.dataset.answers || 0) + 1;
    row.removeAttribute("aria-busy");
  }

  function showAnswer(row, response, size, ms) {
    const status = fastcacheMember(response);
    const [result, why] = status ? judge(status) : ["error", "The answer has no readable Cache-Status: it did not come through fastcache."];
    setResult(row, result);
    count(result);
    show(row, "why", why);
    show(row, "raw", response.headers.get("Cache-Status") || "");
    show(row, "size", `${response.status}, ${bytes(size)}`);
    showTime(row, result, ms);

    const at = response.headers.get("X-Rendered-At");
    const nth = response.headers.get("X-Render-Count");
    show(row, "rendered", at ? `render ${nth}, ${at.slice(11)}` : "");

    const age = response.headers.get("Age");
    row.clock = { at: performance.now(), age: age === null ? null : Number(age), ttl: status ? status.ttl : undefined };
    tick(row);
  }

  // showTime adds, to the time of an answer from the cache, how long the origin
  // took over the same.
  function showTime(row, result, ms) {
    const cached = result === "hit" || result === "stale";
    if (!cached) row.originTime = ms;
    const compare = cached && row.originTime ? ` (origin: ${duration(row.originTime)})` : "";
    show(row, "time", duration(ms) + compare);
  }

  // tick lets the age grow and the time to live run down.
  function tick(row) {
    const { at, age, ttl } = row.clock || {};
    const since = Math.floor((performance.now() - at) / 1000);
    show(row, "age", age == null ? "" : `age ${seconds(age + since)}`);
    let left = "";
    if (typeof ttl === "number") left = ttl - since > 0 ? `fresh for ${seconds(ttl - since)}` : `stale for ${seconds(since - ttl)}`;
    show(row, "ttl", left);
  }

  let hits = 0, asked = 0;
  function count(result) {
    asked++;
    if (result === "hit" || result === "stale") hits++;
    const share = `${Math.round(100 * hits / asked)} %`;
    document.querySelector("[data-hits]").textContent = hits;
    document.querySelector("[data-asked]").textContent = asked;
    document.querySelector("[data-share]").textContent = `, ${share}`;
    document.querySelector("[data-meter]").style.width = `${100 * hits / asked}%`;
  }

  async function askAll() {
    table.dataset.state = "busy";
    const unasked = rows.filter((row) => !("manual" in row.dataset));
    await inLanes(unasked.filter((row) => !row.dataset.after));
    await inLanes(unasked.filter((row) => row.dataset.after));
    table.dataset.state = "done";
  }

  async function inLanes(queue) {
    const lane = async () => { for (let row = queue.shift(); row; row = queue.shift()) await ask(row); };
    await Promise.all(Array.from({ length: lanes }, lane));
  }

  async function purge(row) {
    const name = row.querySelector(".name").textContent;
    let message;
    try {
      const response = await fetch(row.dataset.url, { method: "PURGE", cache: "no-store" });
      message = {
        200: "Purged. The next request is a miss.",
        404: "Nothing was stored, so there was nothing to purge.",
        403: "Refused: this address may not purge (option purge_allow).",
      }[response.status] || `Answer to PURGE: ${response.status}.`;
      if (response.ok) rows.filter((r) => r.dataset.url === row.dataset.url).forEach(forget);
    } catch (error) {
      message = `No answer to PURGE: ${error.message}.`;
    }
    show(row, "why", message);
    show(row, "raw", "");
    announce.textContent = `${name}: ${message}`;
  }

  // forget what a row shows of an answer that is no longer stored.
  function forget(row) {
    const pill = row.querySelector(".pill");
    if (pill.dataset.result !== "none") pill.textContent = "purged";
    pill.dataset.result = "none";
    row.clock = null;
    tick(row);
  }

  const bytes = (n) => n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
  const duration = (ms) => ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
  function seconds(n) {
    if (n < 120) return `${n} s`;
    if (n < 7200) return `${Math.round(n / 60)} min`;
    return n < 172800 ? `${Math.round(n / 3600)} h` : `${Math.round(n / 86400)} d`;
  }

  const summary = () => { announce.textContent = `All asked: ${hits} of ${asked} answers so far came off the shelf.`; };
  const button = document.querySelector("[data-ask-all]");
  button.addEventListener("click", async () => {
    button.disabled = true;
    await askAll();
    button.disabled = false;
    summary();
  });
  for (const row of rows) {
    row.querySelector("[data-ask]").addEventListener("click", async () => {
      await ask(row);
      announce.textContent = `${row.querySelector(".name").textContent}: ${row.querySelector(".pill").textContent}. ${row.querySelector("[data-why]").textContent}`;
    });
    row.querySelector("[data-purge]")?.addEventListener("click", () => purge(row));
    row.querySelector("[data-language]")?.addEventListener("change", () => ask(row));
  }
  setInterval(() => rows.filter((row) => row.clock).forEach(tick), 1000);
  askAll();
})();
