import type { components } from "./schema.js";

type Schemas = components["schemas"];

/** What the server calls a failure. */
export type Code = Schemas["Code"];
export type Denial = Schemas["Denial"];
export type Explanation = Schemas["Explanation"];
export type LeaseAnswer = Schemas["Lease"];
export type LimitStatus = Schemas["LimitStatus"];
export type Limits = Schemas["Limits"];
export type Problem = Schemas["Problem"];
export type Receipt = Schemas["Receipt"];

/** Whole units by the name of the limit, at most `Number.MAX_SAFE_INTEGER`. */
export type Units = Record<string, number>;
