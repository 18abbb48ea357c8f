// Writes src/schema.ts from the server's OpenAPI document: the answers of the client's verbs, and what they refer to.
// With --check it only says whether the file is current. The variable WEIR_OPENAPI names another copy of the document.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const file = new URL("../src/schema.ts", import.meta.url);
const source = process.env.WEIR_OPENAPI ?? new URL("../../../httpapi/httphandler/openapi.json", import.meta.url);
const document = JSON.parse(await readFile(source, "utf8"));
const schemas = {};
const add = (name) => {
  if (name in schemas) return;
  schemas[name] = document.components.schemas[name];
  for (const [, other] of JSON.stringify(schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g)) add(other);
};
["Costs", "Limits", "Lease", "Receipt", "LimitStatus", "Explanation", "Denial", "Problem"].forEach(add);
const ast = await openapiTS({
  openapi: document.openapi, info: document.info, paths: {}, components: { schemas },
});
const text = "// Made by scripts/generate-types.mjs from the server's OpenAPI document.\n\n" + astToString(ast);

if (!process.argv.includes("--check")) {
  await writeFile(file, text);
} else if (text !== (await readFile(file, "utf8"))) {
  console.error("src/schema.ts is not current: npm run types");
  process.exit(1);
}
