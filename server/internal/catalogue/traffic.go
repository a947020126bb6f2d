package catalogue

import "sync/atomic"

// Traffic counts a stream's incoming and outgoing records and bytes, for as long as the process
// runs and the stream is there. Each call adds to it once, whatever its number of records.
type Traffic struct {
	recordsIn, bytesIn, recordsOut, bytesOut atomic.Int64

	recordsThrottled, recordsFailed atomic.Int64
}

// In counts the stored records of an acknowledged call, and their bytes.
func (t *Traffic) In(records, bytes int) {
	t.recordsIn.Add(int64(records))
	t.bytesIn.Add(int64(bytes))
}

// Out counts the records of an answer or an event, and their bytes.
func (t *Traffic) Out(records, bytes int) {
	if records > 0 {
		t.recordsOut.Add(int64(records))
		t.bytesOut.Add(int64(bytes))
	}
}

// Refused counts the records that an answer of PutRecords refuses.
func (t *Traffic) Refused(throttled, failed int) {
	t.recordsThrottled.Add(int64(throttled))
	t.recordsFailed.Add(int64(failed))
}

// Totals are the counts so far.
type Totals struct {
	RecordsIn, BytesIn, RecordsOut, BytesOut int64
	RecordsThrottled, RecordsFailed          int64
}

// Totals returns the counts so far.
func (t *Traffic) Totals() Totals {
	return Totals{
		RecordsIn: t.recordsIn.Load(), BytesIn: t.bytesIn.Load(),
		RecordsOut: t.recordsOut.Load(), BytesOut: t.bytesOut.Load(),
		RecordsThrottled: t.recordsThrottled.Load(), RecordsFailed: t.recordsFailed.Load(),
	}
}
