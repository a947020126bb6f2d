package main

// row is one measured figure, and via is the client of the measurement.
type (
	row string
	via string
)

// These are the rows. Rates are per second; the names of the others have their units.
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

// These are the clients. noClient is for rows without one.
const (
	viaSDK      via = "AWS SDK"
	viaPrepared via = "prepared bodies"
	noClient    via = ""
)

// The goals are defined for calls of this size.
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

// group is a set of rows that one server process goes through.
type group string

const (
	groupSingle  group = "single records"
	groupSmall   group = "batches of 100 B"
	groupKiB     group = "batches of 1 KiB"
	groupUpdates group = "conditional updates"
)

func kinesisGroups() []group { return []group{groupSingle, groupSmall, groupKiB} }
