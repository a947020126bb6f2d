package main

// row is one thing that is measured, and via is the client that it was measured with.
type (
	row string
	via string
)

// The rows. Rates are a second; the unit of the others is in the name.
const (
	putSingle8  row = "PutRecord, 8 in flight"
	putSingle64 row = "PutRecord, 64 in flight"
	putKiB      row = "PutRecords, 1 KiB"
	getKiB      row = "GetRecords, 1 KiB"
	putSmall    row = "PutRecords, 100 B"
	getSmall    row = "GetRecords, 100 B"
	update8     row = "conditional UpdateItem, 8 in flight"
	update64    row = "conditional UpdateItem, 64 in flight"
	firstAnswer row = "start to first answer, ms"
	idleMemory  row = "memory idle, MB"
	fullMemory  row = "memory after the puts of 1 KiB, MB"
	fullPayload row = "of which records, MB"
)

// The clients; noClient is for what needs none.
const (
	viaSDK      via = "AWS SDK"
	viaPrepared via = "prepared bodies"
	noClient    via = ""
)

// A call as the goals are stated for.
const (
	shards       = 16
	inFlight     = 8
	manyInFlight = 64
	mostInFlight = 64
	batchRecords = 500
	kib          = 1 << 10
	small        = 100
	stream       = "bench"
	table        = "bench"
)

// group is the rows that one process of a server goes through.
type group string

const (
	groupSingle  group = "single records"
	groupSmall   group = "batches of 100 B"
	groupKiB     group = "batches of 1 KiB"
	groupUpdates group = "conditional updates"
)

func kinesisGroups() []group { return []group{groupSingle, groupSmall, groupKiB} }
