// Made by scripts/generate-types.mjs from the server's OpenAPI document.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Units by the name of the limit. */
        Costs: {
            [key: string]: components["schemas"]["Amount"];
        };
        /**
         * @description A limit. 1 to 64 characters: a letter, then letters, digits, and any of _ . - ; not "wcu", which is reserved.
         * @example tpm
         */
        LimitName: string;
        /**
         * Format: int64
         * @description Whole units.
         */
        Amount: number;
        /** @description Limits by name. */
        Limits: {
            [key: string]: components["schemas"]["Limit"];
        };
        /** @description A limit, in the words of a limits file. */
        Limit: components["schemas"]["BucketLimit"] | components["schemas"]["WindowLimit"] | components["schemas"]["ConcurrencyLimit"] | components["schemas"]["BudgetLimit"];
        /** @description Holds up to its capacity and regains units all the time. */
        BucketLimit: {
            /**
             * @default bucket
             * @constant
             */
            kind: "bucket";
            /**
             * Format: int64
             * @description The ceiling in units.
             */
            capacity: number;
            /**
             * Format: int64
             * @description Units regained each period. Default: the capacity.
             */
            refill_amount?: number;
            /**
             * @description Seconds, to the millisecond.
             * @default 60
             */
            refill_period: number;
            /**
             * @description false makes a shadow limit: judged, charged and reported, but never denying.
             * @default true
             */
            enforce: boolean;
        };
        /** @description Each unit returns exactly one window after it was reserved. */
        WindowLimit: {
            /** @constant */
            kind: "window";
            /**
             * Format: int64
             * @description The ceiling in units.
             */
            capacity: number;
            /**
             * Format: int64
             * @description Seconds.
             */
            window: number;
            /**
             * @description false makes a shadow limit: judged, charged and reported, but never denying.
             * @default true
             */
            enforce: boolean;
        };
        /** @description Slots that are held until the lease is settled or times out. */
        ConcurrencyLimit: {
            /** @constant */
            kind: "concurrency";
            /**
             * Format: int64
             * @description The ceiling in units.
             */
            capacity: number;
            /**
             * Format: int64
             * @description Seconds without a renewal.
             */
            timeout: number;
            /**
             * @description false makes a shadow limit: judged, charged and reported, but never denying.
             * @default true
             */
            enforce: boolean;
        };
        /** @description Units for each calendar period. */
        BudgetLimit: {
            /** @constant */
            kind: "budget";
            /**
             * Format: int64
             * @description The ceiling in units.
             */
            capacity: number;
            /**
             * @description A week begins on Monday.
             * @enum {string}
             */
            every: "hour" | "day" | "week" | "month";
            /**
             * @description An IANA time zone.
             * @default UTC
             * @example Europe/Berlin
             */
            zone: string;
            /**
             * @description false makes a shadow limit: judged, charged and reported, but never denying.
             * @default true
             */
            enforce: boolean;
        };
        /** @description A reservation that was admitted. */
        Lease: {
            /** @constant */
            allowed: true;
            lease_id: components["schemas"]["LeaseID"];
            /**
             * Format: int64
             * @description Unix milliseconds of the reservation.
             */
            reserved_at_unix_ms: number;
            /**
             * Format: int64
             * @description Unix milliseconds at which the lease ends unless it is extended.
             */
            expires_at_unix_ms?: number;
            /**
             * Format: int64
             * @description Unix milliseconds at which the first of its slots returns by itself; absent without slots.
             */
            holds_until_unix_ms?: number;
            /** @description true where the reservation had been answered before. */
            replay?: boolean;
            /**
             * Format: int64
             * @description The number of the last adjust that was applied.
             */
            seq?: number;
            /** @description true where the store did not answer and the policy is allow: nothing was charged. */
            degraded?: boolean;
            limits: components["schemas"]["LimitStatus"][];
        };
        /**
         * @description A ULID, in upper or lower case. In a reservation its time must be at most ten minutes ago, and at most one ahead.
         * @example 01KJQ6PSG0D4ZVJ0W5Q2M8R3TA
         */
        LeaseID: string;
        /** @description One limit of one entity and resource. */
        LimitStatus: {
            entity: components["schemas"]["EntityName"];
            resource: components["schemas"]["ResourceName"];
            limit: components["schemas"]["LimitName"];
            kind: components["schemas"]["Kind"];
            level: components["schemas"]["Level"];
            /**
             * Format: int64
             * @description The ceiling in units.
             */
            capacity: number;
            /**
             * Format: int64
             * @description What may still be taken: after the reservation where it was admitted, as it was judged where it was denied. Below zero it is debt.
             */
            available: number;
            /**
             * Format: int64
             * @description What the request asked of the limit.
             */
            requested: number;
            /** @description true where the limit could not hold what was requested. */
            exceeded: boolean;
            /** @description true where the limit never denies. */
            shadow?: boolean;
            /** @description true in a plain status if the capacity is of limits that are no longer in force on the store: this server refuses reservations with code superseded. */
            superseded?: boolean;
            /**
             * Format: int64
             * @description The wait until it would hold what was requested, if nobody else came.
             */
            retry_after_ms?: number;
            /** @description true where the wait may be longer. */
            retry_after_at_least?: boolean;
            /** @description true where the wait may be shorter: of a concurrency limit, whose slots usually return when leases are settled. */
            at_most?: boolean;
            /**
             * Format: int64
             * @description The wait until a slot is likely to have returned, by how long calls have held them; at most retry_after_ms. Absent if this server has seen none return.
             */
            retry_likely_ms?: number;
        };
        /**
         * @description Who. 1 to 256 bytes of UTF-8: printable characters of Unicode without the space and #; not . or .. or _default_, and not beginning with $SYSTEM or $RESOURCE:.
         * @example acme
         */
        EntityName: string;
        /**
         * @description What. 1 to 128 bytes of UTF-8: printable characters of Unicode without the space and #; not . or .. or _default_, and not beginning with $SYSTEM or $RESOURCE:.
         * @example gpt-4o
         */
        ResourceName: string;
        /** @enum {string} */
        Kind: "bucket" | "window" | "concurrency" | "budget";
        /**
         * @description Where a limit came from, the strongest first.
         * @enum {string}
         */
        Level: "entity" | "entity_default" | "resource" | "system" | "limiter" | "request";
        /** @description The answer to a verb on a lease. */
        Receipt: {
            lease_id: components["schemas"]["LeaseID"];
            /**
             * Format: int64
             * @description Unix milliseconds at which the verb took effect; a replay says when it first did.
             */
            at_unix_ms: number;
            /**
             * Format: int64
             * @description Unix milliseconds at which the lease ends by itself; absent once it is settled.
             */
            expires_at_unix_ms?: number;
            /**
             * Format: int64
             * @description Unix milliseconds at which the first of its slots returns by itself; absent without slots.
             */
            holds_until_unix_ms?: number;
            /** @description true where nothing was charged, so nothing was done. */
            degraded?: boolean;
            /** @description true where units that the lease gave back, now or earlier, may still be charged: the store did not answer the write that returns them, and does not repeat it, because it could return them twice. Repeating the call does not change that. */
            refund_in_doubt?: boolean;
        };
        /** @description Which limits apply to an entity on a resource. */
        Explanation: {
            entity: components["schemas"]["EntityName"];
            resource: components["schemas"]["ResourceName"];
            /** @description The level that won; absent if nothing is configured. */
            level?: components["schemas"]["Level"];
            limits: components["schemas"]["Limits"];
            /** @description The weaker levels that have limits. None of theirs applies. */
            hidden?: components["schemas"]["LevelLimits"][];
            /** @description What a reservation becomes if the store does not answer; absent in a parent. */
            on_unavailable?: components["schemas"]["OnUnavailable"];
            /**
             * @description Where on_unavailable comes from, the strongest first: the options of the server's limiter, the system's configuration in the store, or the default, block. A limits file always sets it: to block if it names none. Absent in a parent.
             * @enum {string}
             */
            on_unavailable_from?: "limiter" | "system" | "default";
            /** @description The entity that is charged too, with the same costs. */
            parent?: components["schemas"]["Explanation"];
            /** @description What the costs come to on this entity: those that it has limits for, and one slot of each concurrency limit that they do not name. Absent if the question names no costs. */
            costs?: components["schemas"]["Costs"];
            /** @description The limits that apply and that the costs do not name: a request is neither judged by them nor charged on them. */
            left_out?: components["schemas"]["LimitName"][];
        };
        /** @description The limits of one level. */
        LevelLimits: {
            level: components["schemas"]["Level"];
            limits: components["schemas"]["Limits"];
        };
        /** @enum {string} */
        OnUnavailable: "block" | "allow";
        /** @description A limit said no (RFC 9457). Nothing was charged anywhere. */
        Denial: {
            /** @constant */
            type: "https://iana.org/assignments/http-problem-types#quota-exceeded";
            title: string;
            /** @constant */
            status: 429;
            detail: string;
            /** @constant */
            allowed: false;
            lease_id?: components["schemas"]["LeaseID"];
            /** @description Who asked: the entity and the resource of each charge, in the request's order. A limit that denied may be another entity's, such as a parent's. */
            charges?: components["schemas"]["Subject"][];
            /**
             * Format: int64
             * @description The wait until the same request would be admitted, if nobody else came.
             */
            retry_after_ms: number;
            /** @description true where the wait may be longer. */
            retry_after_at_least?: boolean;
            /** @description true where the store gave up after losing to other writers. */
            contended?: boolean;
            /** @description Every limit judged. */
            limits?: components["schemas"]["LimitStatus"][];
            /** @description The exceeded ones, by their names in RateLimit-Policy, %2F and all; absent if there are none. */
            "violated-policies"?: string[];
        };
        /** @description One charge of a request, without its costs. */
        Subject: {
            /** @description Who asked. */
            entity: string;
            /** @description For what. */
            resource: string;
        };
        /** @description Every failure that is not a denial (RFC 9457). It never has the member allowed. */
        Problem: {
            /**
             * Format: uri-reference
             * @description urn:weir:problem: and the code with dashes, or about:blank.
             */
            type: string;
            title: string;
            status: number;
            detail: string;
            code?: components["schemas"]["Code"];
            /** @description The part of the input at fault, as a path: costs.tpm */
            field?: string;
            /** @description What stood there, shortened to 64 characters. */
            value?: string;
            /** @description Why it was refused, as the end of a sentence that begins with the field. */
            reason?: string;
            /** @description The mistakes, where there are several, the first 16 of them. */
            errors?: components["schemas"]["Mistake"][];
            /** @description The version that is, if another one was required; absent if there is nothing. */
            current_version?: string;
            /** @description The action of the last change in the audit, if another version was required. */
            last_change?: string;
            /** @description Who made that change, if known. */
            changed_by?: string;
            /**
             * Format: date-time
             * @description When that change was made.
             */
            changed_at?: string;
        };
        /**
         * @description Which trouble it is.
         * @enum {string}
         */
        Code: "invalid" | "unknown limit" | "no limits configured" | "not found" | "unknown lease" | "conflict" | "ended" | "never satisfiable" | "unavailable" | "superseded" | "overloaded" | "permission denied" | "unsupported";
        /** @description One of several mistakes. */
        Mistake: {
            code: components["schemas"]["Code"];
            /** @description The part of the input at fault, as a path: costs.tpm */
            field?: string;
            /** @description What stood there, shortened to 64 characters. */
            value?: string;
            /** @description Why it was refused, as the end of a sentence that begins with the field. */
            reason?: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
