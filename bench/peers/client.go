package main

import "context"

// client makes the measured calls. A call that the server refuses, in whole or in part, is an
// error and is not repeated. A client is safe for concurrent use.
type client interface {
	// putBatch puts all the payload's records in one call.
	putBatch(ctx context.Context, p *payload) error
	// putSingle puts the record number i of the payload, modulo its length.
	putSingle(ctx context.Context, p *payload, i int) error
	// iterator returns a shard iterator at the shard's oldest record.
	iterator(ctx context.Context, shard int) (string, error)
	// read returns the number of records at the iterator, and the next iterator.
	read(ctx context.Context, iterator string) (records int, next string, err error)
	// advance sets a counter to old+1 if it is old.
	advance(ctx context.Context, counter string, old int) error
	close()
}

// named is a client with its name in the tables.
type named struct {
	client
	via via
}

// clients returns the clients of a turn. The first one alternates by round, since it meets a cold
// server.
func (t turn) clients(p *running) []named {
	viaSDK := named{newSDK(p.endpoint), viaSDK}
	if t.server.slow {
		return []named{viaSDK}
	}
	viaPrepared := named{newPrepared(p.endpoint), viaPrepared}
	if t.round%2 == 1 {
		return []named{viaPrepared, viaSDK}
	}
	return []named{viaSDK, viaPrepared}
}
