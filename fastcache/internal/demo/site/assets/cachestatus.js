// Reads the response field Cache-Status (RFC 9211), a list in the syntax of
// structured fields (RFC 9651):  OriginCache; hit; ttl=30, "the edge"; fwd=stale
// Returns [{cache: "OriginCache", hit: true, ttl: 30}, ...] in the order of the
// field (the cache nearest to the client is last), or null if it is malformed.
function parseCacheStatus(field) {
  "use strict";
  const string = '"(?:[\\x20-\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\["\\\\])*"';
  const token = "[A-Za-z*][\\w!#$%&'*+.^`|~:/-]*";
  const number = "-?\\d{1,15}(?:\\.\\d{1,3})?";
  const grammar = {
    name: new RegExp(`${string}|${token}`, "y"),
    parameter: new RegExp(`; *([a-z*][a-z0-9_.*-]*)(?:=(${string}|${token}|${number}|\\?[01]))?`, "y"),
    comma: /[ \t]*,[ \t]*/y,
  };
  let at = 0;
  const take = (rule) => {
    grammar[rule].lastIndex = at;
    const match = grammar[rule].exec(field);
    if (match) at = grammar[rule].lastIndex;
    return match;
  };
  const value = (text) => {
    if (text === undefined || text === "?1") return true;
    if (text === "?0") return false;
    if (text[0] === '"') return text.slice(1, -1).replace(/\\(.)/g, "$1");
    return /^[-\d]/.test(text) ? Number(text) : text;
  };

  field = field.replace(/^ +| +$/g, "");
  const members = [];
  do {
    const name = take("name");
    if (!name) return null;
    const member = { cache: value(name[0]) };
    for (let p = take("parameter"); p; p = take("parameter")) member[p[1]] = value(p[2]);
    members.push(member);
  } while (take("comma"));
  return at === field.length ? members : null;
}
