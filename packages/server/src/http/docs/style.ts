import { createHash } from 'node:crypto';

/** The one style sheet of the documentation: light or dark as the reader prefers, phone first. */
export const css = `
:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f6f8fa; --line: #d5dbe1; --text: #1c2128; --quiet: #545d68;
  --link: #0a58a8; --mark: #eaf3fd; --required: #a3281b;
  --get: #0d6b4c; --post: #0a58a8; --put: #875000; --patch: #683ba0; --delete: #b3261e; --any: #545d68;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1318; --raised: #171c23; --line: #2c343d; --text: #e4e9ee; --quiet: #9ba6b2;
    --link: #76b4f5; --mark: #16273a; --required: #f2958b;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--text);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: 0.15em; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 3px; }
h1, h2, h3, h4 { line-height: 1.25; margin: 0; text-wrap: balance; }
h1 { font-size: 2rem; letter-spacing: -0.02em; }
h2 { font-size: 1.5rem; letter-spacing: -0.015em; }
h3 { font-size: 1.15rem; }
h4 { font-size: 0.8rem; text-transform: uppercase; letter-spacing: 0.06em; color: var(--quiet); margin-top: 1.5rem; }
p { margin: 0.6rem 0; max-width: 44rem; }
ul { max-width: 44rem; padding-left: 1.25rem; }
code, pre, .path, .method { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-size: 0.875em; background: var(--raised); padding: 0.1em 0.3em; border-radius: 4px; overflow-wrap: anywhere; }
a code { color: inherit; }
pre {
  margin: 0; padding: 0.85rem 1rem; font-size: 0.8125rem; line-height: 1.55;
  white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 2;
}
pre code { font-size: inherit; background: none; padding: 0; }
.skip { position: absolute; left: -100vw; top: 0; padding: 0.6rem 1rem; background: var(--ground); z-index: 2; }
.skip:focus { left: 0; }

.brand { font-weight: 700; font-size: 1.1rem; letter-spacing: -0.01em; color: var(--text); text-decoration: none; }
.version { color: var(--quiet); font-size: 0.8rem; margin-left: 0.5rem; }
.sidebar { border-bottom: 1px solid var(--line); padding: 1rem 1.25rem; }
.sidebar summary { cursor: pointer; margin-top: 0.5rem; color: var(--link); }
.wide-only { display: none; }
.contents ul { list-style: none; margin: 0 0 0.5rem; padding: 0; }
.contents .group { display: block; margin-top: 1rem; font-size: 0.85rem; font-weight: 650; color: var(--text); text-decoration: none; }
.contents li a {
  display: block; padding: 0.2rem 0.6rem; border-left: 2px solid var(--line);
  color: var(--quiet); text-decoration: none; font-size: 0.85rem; overflow-wrap: anywhere;
}
.contents li a:hover { color: var(--link); border-left-color: var(--link); }
main { padding: 1.5rem 1.25rem 4rem; min-width: 0; }
.lead { font-size: 1.1rem; color: var(--quiet); }
main > section { margin-top: 3rem; padding-top: 2.25rem; border-top: 1px solid var(--line); }
main > section:first-of-type { border-top: 0; padding-top: 0; margin-top: 2rem; }
.about { color: var(--quiet); }

.operation { margin-top: 2.5rem; }
.operation + .operation { border-top: 1px solid var(--line); padding-top: 2.5rem; }
.operation > header { margin-bottom: 0.75rem; }
.operation h3 a { color: inherit; text-decoration: none; }
.operation h3 a:hover { text-decoration: underline; }
.operation .id { color: var(--quiet); font-size: 0.85rem; }
.route { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.6rem; margin-top: 0.6rem; }
.path { font-size: 0.875rem; overflow-wrap: anywhere; flex: 1 1 12rem; }
.path b { font-weight: 500; color: var(--link); }
.method {
  font-size: 0.72rem; font-weight: 700; letter-spacing: 0.04em; color: #ffffff; background: var(--any);
  padding: 0.15rem 0.5rem; border-radius: 4px;
}
.method-get { background: var(--get); } .method-post { background: var(--post); } .method-put { background: var(--put); }
.method-patch { background: var(--patch); } .method-delete { background: var(--delete); }
.who { background: var(--mark); border-radius: 6px; padding: 0.55rem 0.8rem; font-size: 0.9rem; max-width: 44rem; }
.who strong { font-weight: 650; }

table { width: 100%; border-collapse: collapse; margin-top: 0.5rem; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.5rem 0.75rem 0.5rem 0; border-top: 1px solid var(--line); }
thead th { font-size: 0.8rem; font-weight: 600; color: var(--quiet); border-top: 0; }
tbody th { font-weight: 500; }
.amount { white-space: nowrap; }
.setting { display: block; overflow-wrap: anywhere; }
.setting code { background: none; padding: 0; color: var(--quiet); font-weight: 400; }
.fields { table-layout: fixed; overflow-wrap: anywhere; }
main > section > table, main > section > .sample { max-width: 52rem; }
.fields tbody th { width: 42%; }
.fields thead th:first-child { width: 42%; }
.fields th code { background: none; padding: 0; font-weight: 600; }
.type { display: block; color: var(--quiet); font-size: 0.8rem; font-weight: 400; }
.required, .optional { font-size: 0.75rem; font-weight: 500; white-space: nowrap; color: var(--quiet); }
.required { color: var(--required); }
.constraint { display: block; color: var(--quiet); font-size: 0.82rem; }
.deep-1 { padding-left: 1rem; } .deep-2 { padding-left: 2rem; } .deep-3 { padding-left: 3rem; } .deep-4 { padding-left: 4rem; }
details.more > summary { cursor: pointer; color: var(--link); font-size: 0.9rem; margin-top: 0.5rem; }
.problems { list-style: none; padding: 0; margin: 0.5rem 0 0; font-size: 0.82rem; }
.problems li { padding: 0.15rem 0; overflow-wrap: anywhere; }
.problems .status { display: inline-block; min-width: 2.6rem; font-weight: 650; }
.sample { border: 1px solid var(--line); border-radius: 8px; background: var(--raised); margin-top: 0.9rem; overflow: hidden; }
.sample figcaption { padding: 0.4rem 1rem; font-size: 0.78rem; font-weight: 600; color: var(--quiet); border-bottom: 1px solid var(--line); }
figure { margin: 0; }
footer { color: var(--quiet); font-size: 0.85rem; margin-top: 4rem; border-top: 1px solid var(--line); padding-top: 1rem; }
.narrow { max-width: 50rem; margin: 0 auto; }
.narrow h2 { margin-top: 2.25rem; }
.narrow tbody th { overflow-wrap: anywhere; min-width: 8rem; }
.narrow section { margin-top: 0; padding-top: 0; border-top: 0; }
.crumbs { font-size: 0.9rem; margin-bottom: 1.5rem; }

@media (min-width: 60rem) {
  .layout { display: grid; grid-template-columns: 16.5rem minmax(0, 1fr); max-width: 96rem; margin: 0 auto; }
  .sidebar { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-bottom: 0; border-right: 1px solid var(--line); padding: 1.75rem 1.25rem; }
  .narrow-only { display: none; }
  .wide-only { display: block; }
  main { padding: 2.5rem 3rem 6rem; }
}
@media (min-width: 80rem) {
  .columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 27rem); gap: 2.5rem; align-items: start; }
  .samples { position: sticky; top: 1.5rem; }
  .samples .sample:first-child { margin-top: 0; }
}
@media print { .sidebar { display: none; } .operation { break-inside: avoid; } }
`;

const styleHash = createHash('sha256').update(css).digest('base64');

/** The policy that every page of the documentation is served with: its own style sheet, and nothing else. */
export const docsContentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
