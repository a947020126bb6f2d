package metricspage

// The metrics of runnel proxy. Those of a stream have the label StreamLabel.
const (
	// ProxyPrefix begins the name of each of them.
	ProxyPrefix = "runnel_proxy_"
	// ProxyRequests has the labels operation and result.
	ProxyRequests = "runnel_proxy_requests_total"

	proxyStream              = "runnel_proxy_stream_"
	ProxyRecordsTaken        = proxyStream + "records_taken_total"
	ProxyRecordsDelivered    = proxyStream + "records_delivered_total"
	ProxyRecordsUndelivered  = proxyStream + "records_undelivered_total"
	ProxyCalls               = proxyStream + "calls_total"
	ProxyAttemptsRetried     = proxyStream + "attempts_retried_total"
	ProxyAttemptsThrottled   = proxyStream + "attempts_throttled_total"
	ProxyAttemptsUnknown     = proxyStream + "attempts_unknown_total"
	ProxyRecordsBuffered     = proxyStream + "records_buffered"
	ProxyBytesBuffered       = proxyStream + "bytes_buffered"
	ProxyOldestRecordSeconds = proxyStream + "oldest_record_seconds"
	ProxyOutage              = proxyStream + "outage"
)

// The metrics of runnel archive, with the label StreamLabel.
const (
	archivePrefix         = "runnel_archive_"
	ArchiveRecordsRead    = archivePrefix + "records_read_total"
	ArchiveReadAgain      = archivePrefix + "records_read_again_total"
	ArchiveDoublesDropped = archivePrefix + "doubles_dropped_total"
	ArchiveVoidSkipped    = archivePrefix + "void_records_skipped_total"
	ArchiveVoidTaken      = archivePrefix + "void_records_taken_total"
	ArchiveCommits        = archivePrefix + "commits_total"
	ArchiveGaps           = archivePrefix + "gaps_total"
	ArchiveTakeovers      = archivePrefix + "takeovers_total"
	ArchiveUnclaimed      = archivePrefix + "unclaimed_shards"
	ArchiveOutages        = archivePrefix + "outages_total"
)

// The metrics of runnel relay, with the label StreamLabel.
const (
	relayPrefix                   = "runnel_relay_"
	RelayLeading                  = relayPrefix + "leading"
	RelayRowsSent                 = relayPrefix + "rows_sent_total"
	RelayRowsDead                 = relayPrefix + "rows_dead_total"
	RelayInversions               = relayPrefix + "inversions_total"
	RelayRows                     = relayPrefix + "rows_on_their_way"
	RelayBytes                    = relayPrefix + "bytes_on_their_way"
	RelayJournalUnits             = relayPrefix + "journal_units"
	RelayHeldKeys                 = relayPrefix + "held_keys"
	RelayPassedKeys               = relayPrefix + "passed_keys"
	RelayOldestRowSeconds         = relayPrefix + "oldest_row_seconds"
	RelayOldestTransactionSeconds = relayPrefix + "oldest_transaction_seconds"
)

// The metrics of runnel rollup, with the label StreamLabel.
const (
	rollupPrefix         = "runnel_rollup_"
	RollupRecords        = rollupPrefix + "records_total"
	RollupBad            = rollupPrefix + "bad_records_total"
	RollupRows           = rollupPrefix + "rows_written_total"
	RollupBatches        = rollupPrefix + "batches_total"
	RollupRetries        = rollupPrefix + "retries_total"
	RollupDoublesDropped = rollupPrefix + "doubles_dropped_total"
	RollupVoidSkipped    = rollupPrefix + "void_records_skipped_total"
	RollupVoidTaken      = rollupPrefix + "void_records_taken_total"
	RollupGaps           = rollupPrefix + "gaps_total"
	RollupUnclaimed      = rollupPrefix + "unclaimed_shards"
	RollupTakeovers      = rollupPrefix + "takeovers_total"
)

// The metrics of a worker of a fleet, with the labels StreamLabel and AppLabel. Those of the fleet
// are only on the pages of watchers.
const (
	workerPrefix          = "runnel_worker_"
	WorkerTotalLeases     = workerPrefix + "total_leases"
	WorkerTotalShards     = workerPrefix + "total_shards"
	WorkerUnclaimedLeases = workerPrefix + "unclaimed_leases"

	WorkerLeases           = workerPrefix + "leases"
	WorkerWatching         = workerPrefix + "watching"
	WorkerRetentionSeconds = workerPrefix + "retention_seconds"
	WorkerRecords          = workerPrefix + "records_total"
	WorkerBytes            = workerPrefix + "bytes_total"
	WorkerRetries          = workerPrefix + "retries_total"
	WorkerThrottles        = workerPrefix + "throttles_total"
)

// The metrics of a shard that a worker holds, with the label ShardLabel, too. ShardState has
// StateLabel and is 1.
const (
	shardPrefix                = workerPrefix + "shard_"
	ShardBehindSeconds         = shardPrefix + "behind_seconds"
	ShardCheckpointAgeSeconds  = shardPrefix + "checkpoint_age_seconds"
	ShardHandlerSeconds        = shardPrefix + "handler_seconds_total"
	ShardHandlerRunningSeconds = shardPrefix + "handler_running_seconds"
	ShardRecords               = shardPrefix + "records_total"
	ShardBytes                 = shardPrefix + "bytes_total"
	ShardRetries               = shardPrefix + "retries_total"
	ShardThrottles             = shardPrefix + "throttles_total"
	ShardState                 = shardPrefix + "state"
)

// The labels: the name of a stream, an application, a shard, and the state of a shard.
const (
	StreamLabel = "stream"
	AppLabel    = "app"
	ShardLabel  = "shard"
	StateLabel  = "state"
)
