// The suite's client as a program: what its own cli.mjs does, without the tests of
// Surrogate-Control.
//
//   node client.mjs FOLDER           prints what the suite says of its tests, as JSON
//   node client.mjs FOLDER BASE      runs them against a cache, prints the results as JSON
//   node client.mjs FOLDER BASE ID   runs one, prints its requests and responses
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import fetch from 'node-fetch'

const [folder, base, id] = process.argv.slice(2)
const load = (file) => import(pathToFileURL(path.join(folder, file)))

const groups = (await load('tests/index.mjs')).default
const { runTests, getResults } = await load('client/runner.mjs')

if (base === undefined) {
  const tests = groups.flatMap((group) => group.tests
    .filter((test) => !test.browser_only)
    .map((test) => ({
      id: test.id,
      group: group.id,
      kind: test.kind ?? 'required',
      depends_on: test.depends_on ?? [],
    })))
  console.log(JSON.stringify(tests))
} else if (id === undefined) {
  await runTests(groups, fetch, false, base)
  console.log(JSON.stringify(getResults()))
} else {
  const tests = groups.flatMap((group) => group.tests).filter((test) => test.id === id)
  for (const test of tests) test.dump = true
  await runTests([{ tests }], fetch, false, base)
  console.log(id, JSON.stringify(getResults()[id]))
}
