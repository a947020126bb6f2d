package main

import "context"

// client makes the calls that are measured. One that the server refuses, in whole or in part,
// is an error, and is not tried again. Safe for concurrent use.
type client interface {
	// putBatch puts all the payload's records in one call.
	putBatch(ctx context.Context, p *payload) error
	// putSingle puts the record number i of the payload, modulo its length.
	putSingle(ctx context.Context, p *payload, i int) error
	// iterator returns one that begins at a shard's oldest record.
	iterator(ctx context.Context, shard int) (string, error)
	// read returns how many records there are at the iterator, and the next one.
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

// clients returns the clients that a turn measures with. Which is first alternates by round,
// since the first meets a server that is cold.
func (t turn) clients(p *process) []named {
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
