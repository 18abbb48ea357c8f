export { type CallOptions, Client, type ClientOptions, type LeaseRequest, type ReserveRequest } from "./client.js";
export { Denied, hasCode, WeirError } from "./errors.js";
export { jobLeaseId, leaseId } from "./ids.js";
export { Lease } from "./lease.js";
export type {
  Code, Denial, Explanation, LeaseAnswer, Limits, LimitStatus, Problem, Receipt, Units,
} from "./types.js";
