// The programs of README.md, against a server of weir and a fake OpenAI server.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { promisify } from "node:util";
import { expectUsed, newEntity, slots, used } from "./server.mjs";

const page = await readFile(new URL("../README.md", import.meta.url), "utf8");
const blocks = [...page.matchAll(/^```(ts|text)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }));

const run = promisify(execFile);
let files = 0;

/** Compiles a program beside the package, with all checks of types, and returns its URL. */
async function program(text) {
  const name = `readme-${process.pid}-${files++}`;
  await writeFile(new URL(`../${name}.mts`, import.meta.url), text);
  const flags = ["--strict", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022", "--skipLibCheck"];
  const args = ["node_modules/typescript/bin/tsc", ...flags, `${name}.mts`];
  await run(process.execPath, args, { cwd: new URL("..", import.meta.url) }).catch((error) => assert.fail(error.stdout));
  return new URL(`../${name}.mjs`, import.meta.url);
}

test("programs with an output print it", async () => {
  let found = 0;
  for (const [n, { language, text }] of blocks.entries()) {
    const want = blocks[n + 1];
    if (language !== "ts" || want?.language !== "text") continue;
    found++;
    const file = await program(text.replaceAll('"acme"', JSON.stringify(newEntity())));
    const { stdout, stderr } = await run(process.execPath, [file.pathname]);
    assert.deepEqual([stdout, stderr], [want.text, ""]);
  }
  assert.equal(found, 2);
});

test("with the OpenAI SDK, each call is charged what it used", async () => {
  const [ask, stream] = blocks.filter((b) => b.text.includes("llm.chat.completions.create"));
  // The limits of these servers that do not change by themselves have other names.
  const counted = (ask.text + stream.text)
    .replaceAll('"llm"', '"counted"').replaceAll("rpm:", "calls:").replaceAll("tpm:", "tokens:");
  const sdk = await import(await program(`${counted}\nexport { ask, stream };\n`));

  let entity = newEntity();
  assert.match(await sdk.ask(entity, "Say hello."), /^Hello!/);
  await expectUsed(entity, 1, 20);
  await assert.rejects(sdk.ask(entity, "refuse"), { status: 429 });
  await expectUsed(entity, 1, 20);

  entity = newEntity();
  let answer = "";
  for await (const chunk of sdk.stream(entity, "Say hello.")) {
    answer += chunk.choices[0]?.delta.content ?? "";
    if (slots > 0) assert.equal((await used(entity)).parallel, 1);
  }
  assert.equal(answer, "Hello! This is an answer in several pieces.");
  await expectUsed(entity, 1, 20);

  entity = newEntity();
  for await (const _ of sdk.stream(entity, "Say hello.")) break;
  const { tokens } = await used(entity);
  assert.ok(tokens > 26 && tokens < 40, `${tokens} tokens for one piece`);
  await expectUsed(entity, 1, tokens);

  entity = newEntity();
  await assert.rejects(async () => {
    for await (const _ of sdk.stream(entity, "break"));
  });
  const broken = (await used(entity)).tokens;
  assert.ok(broken > 21 && broken < 40, `${broken} tokens for a stream that broke`);
  await expectUsed(entity, 1, broken);
});
