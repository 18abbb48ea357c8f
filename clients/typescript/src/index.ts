export {
  type CallOptions, Client, type ClientOptions, type Explanation, type LeaseRequest, type ReserveRequest, type Units,
} from "./client.js";
export { type Code, type Denial, Denied, hasCode, type LimitStatus, type Problem, WeirError } from "./errors.js";
export { jobLeaseId, leaseId } from "./ids.js";
export { Lease, type LeaseAnswer, type Receipt } from "./lease.js";
