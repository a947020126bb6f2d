package catalogue

import "sync/atomic"

// traffic counts a stream's incoming and outgoing records and bytes, for as long as the process
// runs and the stream is there. Each call adds to it once, whatever its number of records.
type traffic struct {
	recordsIn, bytesIn, recordsOut, bytesOut atomic.Int64
}

// In counts the stored records of an acknowledged call, and their bytes.
func (t *traffic) In(records, bytes int) {
	t.recordsIn.Add(int64(records))
	t.bytesIn.Add(int64(bytes))
}

// Out counts the records of an answer or an event, and their bytes.
func (t *traffic) Out(records, bytes int) {
	if records > 0 {
		t.recordsOut.Add(int64(records))
		t.bytesOut.Add(int64(bytes))
	}
}

// totals are the counts so far.
type totals struct{ RecordsIn, BytesIn, RecordsOut, BytesOut int64 }

// Totals returns the counts so far.
func (t *traffic) Totals() totals {
	return totals{
		RecordsIn: t.recordsIn.Load(), BytesIn: t.bytesIn.Load(),
		RecordsOut: t.recordsOut.Load(), BytesOut: t.bytesOut.Load(),
	}
}
