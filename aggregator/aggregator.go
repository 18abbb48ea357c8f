// Package aggregator counts usage from the records of a DynamoDB table's stream, and finds buckets
// to split. It makes no calls: records go in, and what is to be written comes out. Package dynamodb
// has the loop that reads the stream and writes
// ([github.com/weir-limiter/weir/dynamodb.Table.Aggregate]).
//
// [Parse] turns the record of a bucket item into a [Change]: what the item says, before and after,
// about the units ever taken on each limit (tc). [Book] sorts the changes of a batch into a
// [Booking] for each usage item, which is one entity, resource and hour. The hour is that of the
// record. The units of a limit are the difference of tc in whole units, each rounded down, so that
// the sum over all records telescopes: what is reserved in one hour and refunded in the next one
// makes the next hour smaller, or negative.
//
// Exactly once: a usage item has, for each shard of the bucket, the [Position] up to which its
// records are in the sums. A booking is written on the condition that all its records are beyond
// that. If the condition fails, [Booking.Rest] returns the part that the item does not have yet.
// So it does not matter how often a record is read, or by how many readers, as long as each reads
// the records of a bucket in order and without leaving any out.
//
// After a gap in the stream, a [Base] is what was last counted of a bucket. The first change after
// the gap is booked with the difference between the two, so that totals are right again.
//
// [Totals] adds up the hours of a day and the days of a month. [Lost] finds the time whose records
// the stream no longer had when they were to be read.
//
// [Writes] counts the writes of bucket items, and says which buckets to split before DynamoDB
// throttles them. [Doubled] finds those that were split, perhaps by a process that ended before it
// had told all shards.
//
// [Refills] returns the refills that are due after a batch, for tables with Python clients.
package aggregator
